/**
 * Guests that are paused because the disk of this host is nearly full. Disks of guests are thinly
 * provisioned: a guest that continued writing would use the space that stops, deletions and
 * accounts need, which would affect all accounts. It loses nothing while paused, and is resumed
 * when there is space again. Guests of the owner that grew most are paused first, while there is space for
 * everything else.
 */
import { lstatSync } from 'node:fs';
import { FILES } from '../arguments.ts';
import type { GuestFolders } from '../guests/guest-folders.ts';
import type { GuestRun } from '../guests/guest-run.ts';

/** The disk of this host. */
export interface HostDisk {
  /** Whether less space is free than Cloudlet's own commits need. */
  isLow(): boolean;
  /** Space is low, and the reserve for those commits was released: any write may use it. */
  isOut(): boolean;
  /** `scarce`: guests have used up their share of the disk; `tight`: they will soon. */
  machineRoom(): 'ample' | 'tight' | 'scarce';
}

/** Owners of guests by id; a guest without one counts alone. Called while space is scarce. */
export type OwnersOf = () => Promise<ReadonlyMap<string, number>>;

export interface DiskFullWaitsDeps {
  readonly disk: HostDisk;
  readonly folders: Pick<GuestFolders, 'find' | 'guestPath'>;
  /** Runs that live and are not being stopped. */
  readonly runs: () => readonly GuestRun[];
  readonly warn: (vmId: string, text: string) => void;
}

const QMP_MS = 1000;
const NOBODY: ReadonlySet<string> = new Set();
/** QEMU's states for guests paused by a full disk or on command. */
const PAUSED = ['io-error', 'paused'];

export class DiskFullWaits {
  readonly #deps: DiskFullWaitsDeps;
  /** Handles of runs that are paused. */
  readonly #waiting = new Map<string, string>();
  /** Blocks of a run's files at the last update. */
  readonly #blocks = new Map<GuestRun, number>();
  /** Blocks of a run's files when space became tight. */
  readonly #firstBlocks = new Map<GuestRun, number>();
  /** Runs that wait although space is not low, because their owner grew most. */
  readonly #heldBack = new Set<GuestRun>();

  constructor(deps: DiskFullWaitsDeps) {
    this.#deps = deps;
  }

  isWaiting(vmId: string): boolean {
    return this.#waiting.has(vmId);
  }

  get count(): number {
    return this.#waiting.size;
  }

  /** No guest runs or waits, and there is space: nothing to update. */
  get mayRest(): boolean {
    return this.#deps.runs().length === 0 && this.count === 0 && !this.isScarce;
  }

  /** Space is scarce for guests: those that grow are paused, those of the owner that grew most first. */
  get isScarce(): boolean {
    return this.#deps.disk.machineRoom() === 'scarce';
  }

  /**
   * Call several times a second. While the disk is low, pauses the guests whose files grew since
   * the last call, and all when it is full. While it is scarce, pauses the guests that grew of each owner
   * whose guests grew at least half as much as those of the one that grew most. Guests in `over` may not
   * grow: their owners hold more than their share. Else resumes the paused ones.
   */
  async update(ownersOf: OwnersOf = async () => new Map(), over = NOBODY): Promise<void> {
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
      return;
    }
    const room = disk.machineRoom();
    if (room === 'ample') {
      for (const kept of [this.#blocks, this.#heldBack])
        for (const run of kept.keys()) if (!over.has(run.vmId)) kept.delete(run);
      const growing = live.filter((run) => over.has(run.vmId) && this.#grew(run));
      this.#firstBlocks.clear();
      await each(growing, (run) => this.#hold(run));
    } else {
      const growing = live.filter((run) => this.#grew(run));
      await each(
        growing.filter(({ vmId }) => over.has(vmId)),
        (run) => this.#hold(run),
      );
      if (room === 'scarce' && growing.length > 0) await this.#holdBack(growing, await ownersOf());
    }
    await each(live, async (run) => {
      if (this.isWaiting(run.vmId)) await this.check(run);
    });
  }

  async #holdBack(growing: readonly GuestRun[], owners: ReadonlyMap<string, number>): Promise<void> {
    const ownerOf = ({ vmId }: GuestRun) => owners.get(vmId) ?? vmId;
    const grown = new Map<number | string, number>();
    for (const [run, first] of this.#firstBlocks) {
      const more = (this.#blocks.get(run) ?? first) - first;
      grown.set(ownerOf(run), (grown.get(ownerOf(run)) ?? 0) + more);
    }
    const most = Math.max(...grown.values());
    await each(growing, async (run) => {
      if (2 * (grown.get(ownerOf(run)) ?? 0) < most) return;
      await this.#hold(run);
    });
  }

  async #hold(run: GuestRun): Promise<void> {
    this.#heldBack.add(run);
    await this.#halt(run);
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
    if (this.#deps.disk.isLow() || this.#heldBack.has(run)) return;
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
    for (const kept of [this.#blocks, this.#firstBlocks, this.#heldBack])
      for (const run of kept.keys()) if (!handles.has(run.handle)) kept.delete(run);
  }

  #grew(run: GuestRun): boolean {
    const { folders } = this.#deps;
    const isRaw = folders.find(run.vmId)?.diskFormat === 'raw';
    const files = [isRaw ? FILES.rawDisk : FILES.qcow2Disk, FILES.consoleLog];
    const blocks = files.reduce((sum, file) => sum + blocksOf(folders.guestPath(run.vmId, file)), 0);
    const before = this.#blocks.get(run);
    this.#blocks.set(run, blocks);
    if (!this.#firstBlocks.has(run)) this.#firstBlocks.set(run, blocks);
    return before !== undefined && blocks > before;
  }
}

async function each(runs: readonly GuestRun[], work: (run: GuestRun) => Promise<void>): Promise<void> {
  await Promise.all(runs.map(work));
}

function blocksOf(path: string): number {
  return lstatSync(path, { throwIfNoEntry: false })?.blocks ?? 0;
}
