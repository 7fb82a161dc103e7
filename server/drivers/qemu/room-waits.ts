/**
 * Guests that wait because the disk of this host is nearly full. Disks of guests are promised, not set aside:
 * one that went on writing would take the room in which stops, deletions and accounts are written down, and
 * so lock everybody out. Such a guest stands still, none the worse for it, until there is room again.
 */
import { lstatSync } from 'node:fs';
import { FILES } from './arguments.ts';
import type { GuestFolders } from './guest-folders.ts';
import type { GuestRun } from './guest-run.ts';

/** The disk of this host. */
export interface HostDisk {
  /** Less is free than is kept for Cloudlet's own commits. */
  isLow(): boolean;
  /** Low, and what was set aside for those commits was given back to the disk: whoever writes takes it. */
  isOut(): boolean;
}

export interface RoomWaitsDeps {
  readonly disk: HostDisk;
  readonly folders: Pick<GuestFolders, 'find' | 'guestPath'>;
  /** Runs that live and are not being stopped. */
  readonly runs: () => readonly GuestRun[];
  readonly warn: (vmId: string, text: string) => void;
}

const QMP_MS = 1000;
/** QEMU's words for a guest that it stopped at the end of the disk, and for one that was told to stop. */
const STANDING = ['io-error', 'paused'];

export class RoomWaits {
  readonly #deps: RoomWaitsDeps;
  /** Handles of runs that stand still. */
  readonly #waiting = new Map<string, string>();
  /** Blocks that the files of a run took at the last look. */
  readonly #blocks = new Map<GuestRun, number>();

  constructor(deps: RoomWaitsDeps) {
    this.#deps = deps;
  }

  isWaiting(vmId: string): boolean {
    return this.#waiting.has(vmId);
  }

  get count(): number {
    return this.#waiting.size;
  }

  /**
   * To be called some times a second. Where the disk is low, halts guests whose files grew since the last
   * look, and all when it is out; else lets go on those that wait.
   */
  async look(): Promise<void> {
    const { disk, runs } = this.#deps;
    const live = runs();
    this.#forget(live);
    if (disk.isLow()) {
      const isOut = disk.isOut();
      await each(live, async (run) => {
        // Asked of each, so that all have figures at the next look.
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

  /** Resolves when all guests that answer stand still: what is set aside for commits is about to be given. */
  async haltAll(): Promise<void> {
    await each(this.#deps.runs(), (run) => this.#halt(run));
  }

  /** Sees whether the guest stands still, whoever made it, and lets it go on when there is room. */
  async check(run: GuestRun): Promise<void> {
    const status = await run.status(QMP_MS).catch(() => null);
    if (status === null || run.isStopping) return;
    if (!STANDING.includes(status)) return this.#note(run, false);
    this.#note(run, true);
    if (this.#deps.disk.isLow()) return;
    await run.command('cont', {}, QMP_MS).catch(() => {});
    const isRunning = (await run.status(QMP_MS).catch(() => status)) === 'running';
    if (isRunning) this.#note(run, false);
  }

  async #halt(run: GuestRun): Promise<void> {
    await run.command('stop', {}, QMP_MS).catch(() => {});
    const status = await run.status(QMP_MS).catch(() => null);
    if (status !== null && STANDING.includes(status)) this.#note(run, true);
  }

  #note({ vmId, handle }: GuestRun, isWaiting: boolean): void {
    if (isWaiting === this.#waiting.has(vmId)) return;
    if (isWaiting) this.#waiting.set(vmId, handle);
    else this.#waiting.delete(vmId);
    this.#deps.warn(vmId, isWaiting ? 'it waits: the disk of the host is nearly full' : 'it goes on');
  }

  /** Lets go of what is known of runs that ended. */
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
