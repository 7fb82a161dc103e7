/**
 * Guests that are paused because the disk of this host is nearly full. Disks of guests are thinly
 * provisioned: a guest that continued writing would use the space that stops, deletions and
 * accounts need, which would affect all accounts. It loses nothing while paused, and is resumed
 * when there is space again.
 */
import { lstatSync } from 'node:fs';
import { FILES } from '../arguments.ts';
import type { GuestFolders } from '../guests/guest-folders.ts';
import type { GuestRun } from '../guests/guest-run.ts';

/** The disk of this host. */
export interface HostDisk {
  /** Less space is free than Cloudlet's own commits need. */
  isLow(): boolean;
  /** Space is low, and the reserve for those commits was released: any write may use it. */
  isOut(): boolean;
}

export interface DiskFullWaitsDeps {
  readonly disk: HostDisk;
  readonly folders: Pick<GuestFolders, 'find' | 'guestPath'>;
  /** Runs that live and are not being stopped. */
  readonly runs: () => readonly GuestRun[];
  readonly warn: (vmId: string, text: string) => void;
}

const QMP_MS = 1000;
/** QEMU's states for guests paused by a full disk or on command. */
const PAUSED = ['io-error', 'paused'];

export class DiskFullWaits {
  readonly #deps: DiskFullWaitsDeps;
  /** Handles of runs that are paused. */
  readonly #waiting = new Map<string, string>();
  /** Blocks of a run's files at the last update. */
  readonly #blocks = new Map<GuestRun, number>();

  constructor(deps: DiskFullWaitsDeps) {
    this.#deps = deps;
  }

  isWaiting(vmId: string): boolean {
    return this.#waiting.has(vmId);
  }

  get count(): number {
    return this.#waiting.size;
  }

  /**
   * Call several times a second. While the disk is low, pauses the guests whose files grew since
   * the last call, and all when it is full; else resumes the paused guests.
   */
  async update(): Promise<void> {
    const { disk, runs } = this.#deps;
    const live = runs();
    this.#forget(live);
    if (disk.isLow()) {
      const isOut = disk.isOut();
      await each(live, async (run) => {
        // Measured for each guest, so that all have figures at the next update.
        const grew = this.#grew(run);
        if ((grew || isOut) && !this.isWaiting(run.vmId)) await this.#halt(run);
      });
    } else {
      this.#blocks.clear();
      await each(live, async (run) => {
        if (this.isWaiting(run.vmId)) await this.check(run);
      });
    }
  }

  /** Resolves when all guests that respond are paused: the reserve for commits is about to be released. */
  async haltAll(): Promise<void> {
    await each(this.#deps.runs(), (run) => this.#halt(run));
  }

  /** Checks whether the guest is paused, and resumes it when there is space. */
  async check(run: GuestRun): Promise<void> {
    const status = await run.status(QMP_MS).catch(() => null);
    if (status === null || run.isStopping) return;
    if (!PAUSED.includes(status)) return this.#note(run, false);
    this.#note(run, true);
    if (this.#deps.disk.isLow()) return;
    await run.command('cont', {}, QMP_MS).catch(() => {});
    const isRunning = (await run.status(QMP_MS).catch(() => status)) === 'running';
    if (isRunning) this.#note(run, false);
  }

  async #halt(run: GuestRun): Promise<void> {
    await run.command('stop', {}, QMP_MS).catch(() => {});
    const status = await run.status(QMP_MS).catch(() => null);
    if (status !== null && PAUSED.includes(status)) this.#note(run, true);
  }

  #note({ vmId, handle }: GuestRun, isWaiting: boolean): void {
    if (isWaiting === this.#waiting.has(vmId)) return;
    if (isWaiting) this.#waiting.set(vmId, handle);
    else this.#waiting.delete(vmId);
    this.#deps.warn(
      vmId,
      isWaiting ? 'the machine is paused: the disk of the host is nearly full' : 'the machine resumes',
    );
  }

  /** Drops ended runs. */
  #forget(live: readonly GuestRun[]): void {
    const handles = new Set(live.map(({ handle }) => handle));
    for (const [vmId, handle] of this.#waiting) if (!handles.has(handle)) this.#waiting.delete(vmId);
    for (const run of this.#blocks.keys()) if (!handles.has(run.handle)) this.#blocks.delete(run);
  }

  #grew(run: GuestRun): boolean {
    const { folders } = this.#deps;
    const isRaw = folders.find(run.vmId)?.diskFormat === 'raw';
    const files = [isRaw ? FILES.rawDisk : FILES.qcow2Disk, FILES.consoleLog];
    const blocks = files.reduce((sum, file) => sum + blocksOf(folders.guestPath(run.vmId, file)), 0);
    const before = this.#blocks.get(run);
    this.#blocks.set(run, blocks);
    return before !== undefined && blocks > before;
  }
}

async function each(runs: readonly GuestRun[], work: (run: GuestRun) => Promise<void>): Promise<void> {
  await Promise.all(runs.map(work));
}

function blocksOf(path: string): number {
  return lstatSync(path, { throwIfNoEntry: false })?.blocks ?? 0;
}
