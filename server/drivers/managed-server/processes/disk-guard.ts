/**
 * Keeps accounts' servers from filling the disk of the host. A server far above its limit is ended.
 * While disk space is scarce, those whose data grow are restricted: their databases are treated as
 * full, so that their owners can delete. When the disk is low, no server may grow, and when it is
 * almost full all are held at once. Deletes work at every level.
 */
import { statfs } from 'node:fs/promises';
import { type Beat, onBeat } from '../../../platform/background/beat.ts';
import type { DiskLevel } from '../../../platform/host/disk-space.ts';
import { excessOf } from '../server-bytes.ts';
import type { Waits } from './held-back.ts';

/** A server, whether it is up or not. */
export interface Guarded {
  readonly isUp: boolean;
  /** Last measured bytes on disk. */
  readonly bytes: number;
  /** Maximum bytes of its databases. */
  readonly limitBytes: number;
  /** Never rejects. */
  measureDisk(): Promise<void>;
  /** Sets why no data may grow, and restricts a growing server; null: all may. Never rejects. */
  holdBack(waits: Waits | null): Promise<void>;
  /** Whether holdBack() revoked its users' rights to grow. Then it need not be suspended: deletes work. */
  readonly isWithoutGrowth: boolean;
  /** Shuts it down with all sessions. Never rejects. */
  endFor(why: string): Promise<void>;
  /** See AccountEngine. */
  readonly engine: { hold(isHeld: boolean): Promise<void> };
}

export interface DiskGuardDeps {
  /** A folder on the file system of the servers. */
  readonly folder: string;
  readonly level: () => DiskLevel;
  readonly servers: () => readonly Guarded[];
}

const CHECK_MS = 250;
/** Growth from which a server is considered growing. */
const GROWTH_BYTES = 32 * 2 ** 20;
/** Maximum growth while the disk is almost full, because deletes also write. */
const OUT_GROWTH_BYTES = 16 * 2 ** 20;
/**
 * Growth of disk usage after which the servers are measured; they are also measured while the disk is almost
 * full.
 */
const [SHRUNK_BYTES, OUT_SHRUNK_BYTES] = [16 * 2 ** 20, 4 * 2 ** 20];
/** Checks between measurements of all servers, at any disk level. */
const CHECKS_TO_MEASURE = 5000 / CHECK_MS;
/** If all continued at once, the disk would be low again. */
const LOW_CHECKS = 5000 / CHECK_MS;
const GROWER = {
  why: "the host's disk is nearly full, and the data of this server grew: writes wait for space",
  isGrower: true,
};
const TOO_MUCH =
  "the host's disk is almost full, and a statement was using more of it: delete fewer rows at a time, or use TRUNCATE";
const OTHERS = { why: "the host's disk is nearly full: writes wait for space", isGrower: false };

export class DiskGuard {
  readonly #deps: DiskGuardDeps;
  readonly #beat: Beat;
  /** Base sizes of servers, which may grow by GROWTH_BYTES while the disk is scarce. */
  readonly #from = new Map<Guarded, number>();
  readonly #measured = new WeakSet<Guarded>();
  /** Servers paused because they grew. */
  readonly #growers = new Set<Guarded>();
  #isChecking = false;
  #checks = 0;
  readonly #held = new Set<Guarded>();
  /** Servers being changed: one that hangs does not delay others. */
  readonly #underWay = new Set<Guarded>();
  /** Remaining checks during which the disk counts as low. */
  #lowLeft = 0;
  /** Whether the disk was almost full at the last check. */
  #isOut = false;
  /** Free bytes at the last measurement of all servers. */
  #freeBytes = Number.POSITIVE_INFINITY;

  constructor(deps: DiskGuardDeps) {
    this.#deps = deps;
    const mayRest = () => this.#isQuiet(deps.servers().filter(({ isUp }) => isUp));
    this.#beat = onBeat(CHECK_MS, () => this.check().catch(() => {}), mayRest);
  }

  close(): void {
    this.#beat.stop();
  }

  /** There is space, no server writes, and none waits for space. */
  #isQuiet(up: readonly Guarded[]): boolean {
    const isWaiting = this.#growers.size > 0 || this.#lowLeft > 0;
    return up.length === 0 && !isWaiting && this.#deps.level() === 'ample';
  }

  async check(): Promise<void> {
    const servers = this.#deps.servers();
    const up = servers.filter(({ isUp }) => isUp);
    if (this.#isChecking || this.#isQuiet(up)) return;
    this.#isChecking = true;
    try {
      const level = this.#deps.level();
      const isSuddenlyOut = level === 'out' && !this.#isOut;
      await this.#endLargest(up, isSuddenlyOut);
      this.#lowLeft = level === 'low' || level === 'out' ? LOW_CHECKS : Math.max(0, this.#lowLeft - 1);
      if (level === 'ample') this.#growers.clear();
      else await this.#endGrowing(up);
      if (level === 'ample' || isSuddenlyOut) this.#beginAnew(up);
      this.#isOut = level === 'out';
    } finally {
      this.#isChecking = false;
    }
    await Promise.all(servers.map((server) => this.#bring(server)));
  }

  /**
   * Applies the disk's restrictions to the server. It is held at once, because revoking privileges
   * may wait for the disk.
   */
  async #bring(server: Guarded): Promise<void> {
    if (this.#underWay.has(server)) return;
    this.#underWay.add(server);
    try {
      const isLow = this.#lowLeft > 0;
      const isGrower = this.#growers.has(server);
      const mayNotGrow = this.#deps.level() === 'out' || (isLow && !isGrower);
      if (mayNotGrow && !server.isWithoutGrowth) await this.#hold(server, true);
      await server.holdBack(isGrower ? GROWER : isLow ? OTHERS : null);
      if (!mayNotGrow || server.isWithoutGrowth) await this.#hold(server, false);
    } finally {
      this.#underWay.delete(server);
    }
  }

  /**
   * Ends servers that use far more of the shared disk than their databases may: nothing else limits
   * what they write for sorting, undoing or waiting. `isDue`: measure them in any case.
   */
  async #endLargest(up: readonly Guarded[], isDue: boolean): Promise<void> {
    const { bavail, bsize } = await statfs(this.#deps.folder);
    const free = bavail * bsize;
    const hasShrunk = free < this.#freeBytes - (this.#isOut ? OUT_SHRUNK_BYTES : SHRUNK_BYTES);
    if (hasShrunk || free > this.#freeBytes) this.#freeBytes = free;
    if (!isDue && !hasShrunk && this.#checks++ % CHECKS_TO_MEASURE !== 0) return;
    const measured = async (server: Guarded) => {
      await server.measureDisk();
      this.#measured.add(server);
      const excess = excessOf(server.bytes, server.limitBytes);
      if (excess !== null && server.isUp) await server.endFor(excess);
    };
    await Promise.all(up.map(measured));
  }

  /** Growth counts from here. */
  #beginAnew(up: readonly Guarded[]): void {
    this.#from.clear();
    for (const server of up) if (this.#measured.has(server)) this.#from.set(server, server.bytes);
  }

  /**
   * Records growing servers. One that grows although restricted is ended, and so is one that uses
   * up the remaining space for a large delete.
   */
  async #endGrowing(up: readonly Guarded[]): Promise<void> {
    for (const server of up) {
      if (!this.#measured.has(server)) continue;
      const from = this.#from.get(server) ?? server.bytes;
      const hasGrown = server.bytes - from >= (this.#isOut ? OUT_GROWTH_BYTES : GROWTH_BYTES);
      // Deleted rows make room for new ones.
      this.#from.set(server, hasGrown ? server.bytes : Math.min(from, server.bytes));
      if (!hasGrown) continue;
      if (this.#isOut) await server.endFor(TOO_MUCH);
      else if (this.#growers.has(server)) await server.endFor(`${GROWER.why}, and they kept growing`);
      this.#growers.add(server);
    }
  }

  /** Repeatedly: a tenant may change the setting, and a restarted server has none. */
  async #hold(server: Guarded, isHeld: boolean): Promise<void> {
    if (!server.isUp || (!isHeld && !this.#held.has(server))) return;
    await server.engine.hold(isHeld).catch(() => {});
    if (isHeld) this.#held.add(server);
    else this.#held.delete(server);
  }
}
