/**
 * The location of guests' files. `<vms>/<vmId>/` belongs to us, mode 0700, with our records of the
 * guest; `guest/` in it belongs to the guest's own user and has the files of its process. That
 * process is not trusted: links in there are never followed, and it cannot reach our records.
 */
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../../platform/errors.ts';
import { syncFolder, syncFolderAsync, writeDurableFile } from '../../../platform/files.ts';
import { isId } from '../../../platform/ids.ts';
import { removeTree } from '../../host-process/foreign-files.ts';
import { ENDED } from '../../host-process/keeper-shells.ts';
import { type Ending, readEnding } from '../../host-process/running-process.ts';
import type { GuestSize } from './guest-launcher.ts';
import type { Forwards } from './guest-networks.ts';

/** Facts that never change between prepare() and discard(), once they are known. */
export interface GuestRecord {
  readonly vmId: string;
  readonly uuid: string;
  /** Slot number of the guest, which determines user and address. */
  readonly slot: number;
  /** User id of its process; null: ours, because only root can change it. */
  readonly uid: number | null;
  readonly boot: 'kernel' | 'disk';
  readonly diskFormat: 'raw' | 'qcow2';
  /** Number of times the disk was replaced; missing: 0. */
  readonly rebuilds?: number;
  /** Machine type that the guest sees, `pc-q35-7.2`; missing until a QEMU was available to choose it. */
  readonly machine?: string;
}

/** The current run, or the last one. */
export interface RunRecord {
  readonly handle: string;
  readonly pid: number;
  readonly accel: 'kvm' | 'tcg';
  readonly accelReason: string;
  /** ms since 1970; null until the processor runs. */
  readonly runningSince: number | null;
  /** Address of its ports; none before it can run, and none if it has its own address. */
  readonly forwards: Forwards;
  /** Base of the guest's limits; missing: an older Cloudlet started it. */
  readonly size?: GuestSize;
}

/** The folder that belongs to the guest, in ours. */
export const GUEST = 'guest';
/** In our folder of the guest: the output of its process. */
export const LOG = 'qemu.log';
const RECORD = 'spec.json';
const RUN = 'run.json';
const UNFINISHED = '.new-';
const GONE = '.gone-';
/** A million guests; the hash makes it unlikely that several clouds on one host choose the same slots. */
export const SLOTS = 2 ** 20;
/** User ids of a cloud: of guests, of the test boot, of conversions of images, of the guest of a drill. */
export const UIDS = { probe: SLOTS, images: SLOTS + 1, drill: SLOTS + 2, count: SLOTS + 3 };

/** A loopback address of this guest only, in 127.96.0.0/12. */
export function guestAddress(slot: number): string {
  return `127.${96 + (slot >> 16)}.${(slot >> 8) & 255}.${slot & 255}`;
}

export class GuestFolders {
  readonly #root: string;
  readonly #uidBase: number | null;
  readonly #slotCount: number;
  readonly #records = new Map<string, GuestRecord>();
  readonly #slots = new Set<number>();

  /** Resolves when earlier leftovers are removed; never rejects. */
  readonly swept: Promise<unknown>;

  /** `uidBase` null: guests run as our user. `slots`: maximum guests. Reads existing folders. */
  constructor(root: string, uidBase: number | null, slots = SLOTS) {
    this.#root = root;
    this.#uidBase = uidBase;
    this.#slotCount = slots;
    fs.mkdirSync(root, { recursive: true, mode: 0o700 });
    for (const name of fs.readdirSync(root)) this.#finishReplacing(name);
    const names = fs.readdirSync(root);
    for (const name of names) {
      if (isId('vm', name)) this.#remember(readJson<GuestRecord>(join(root, name, RECORD)));
    }
    for (const name of names) if (isId('vm', name) && !this.#records.has(name)) this.#takeIn(name);
    const left = names.filter((name) => name.startsWith(UNFINISHED) || name.startsWith(GONE));
    this.swept = Promise.allSettled(left.map((name) => removeTree(join(root, name))));
  }

  /** We were killed after the old folders were removed: the new ones are complete and replace them. */
  #finishReplacing(name: string): void {
    const vmId = name.startsWith(UNFINISHED) ? name.slice(UNFINISHED.length) : '';
    if (!isId('vm', vmId) || fs.existsSync(this.path(vmId))) return;
    if (readJson<GuestRecord>(join(this.#root, name, RECORD))?.rebuilds === undefined) return;
    fs.renameSync(join(this.#root, name), this.path(vmId));
    syncFolder(this.#root);
  }

  #remember(record: GuestRecord | null): void {
    if (record?.slot === undefined) return;
    this.#records.set(record.vmId, record);
    this.#slots.add(record.slot);
  }

  /** A guest from a recovery point: this host chooses number and user. */
  #takeIn(vmId: string): void {
    const portable = readJson<Omit<GuestRecord, 'slot' | 'uid'>>(this.path(vmId, RECORD));
    if (portable?.vmId !== vmId) return;
    const slot = this.#freeSlot(vmId);
    const uid = this.#uidBase === null ? null : this.#uidBase + slot;
    const folder = this.guestPath(vmId);
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (uid !== null) {
      for (const name of fs.readdirSync(folder)) fs.lchownSync(join(folder, name), uid, uid);
      fs.chownSync(folder, uid, uid);
    }
    this.#rewrite({ ...portable, slot, uid });
    this.#slots.add(slot);
  }

  records(): GuestRecord[] {
    return [...this.#records.values()];
  }

  find(vmId: string): GuestRecord | undefined {
    return this.#records.get(vmId);
  }

  /** The path in the folder that belongs to us. */
  path(vmId: string, name = ''): string {
    if (!isId('vm', vmId)) throw new Error('not the id of a guest');
    return join(this.#root, vmId, name);
  }

  /** The path in the folder that belongs to the guest. */
  guestPath(vmId: string, name = ''): string {
    return join(this.path(vmId, GUEST), name);
  }

  /**
   * Creates both folders and lets `fill` put files into the guest's; on failure nothing is left
   * behind, and after a crash only files that the next start removes. All files then belong to the
   * guest.
   */
  async create(
    guest: Omit<GuestRecord, 'slot' | 'uid'>,
    fill: (folder: string, record: GuestRecord) => Promise<void>,
  ): Promise<GuestRecord> {
    if (fs.existsSync(this.path(guest.vmId))) throw damaged();
    const slot = this.#freeSlot(guest.vmId);
    this.#slots.add(slot);
    const record = { ...guest, slot, uid: this.#uidBase === null ? null : this.#uidBase + slot };
    try {
      await this.#fillNew(record, fill, (unfinished) => fs.renameSync(unfinished, this.path(guest.vmId)));
    } catch (error) {
      this.#slots.delete(slot);
      throw error;
    }
    return record;
  }

  /**
   * Replaces both folders of a guest that does not run, with all that is in them. On failure the old ones
   * stay; after a crash, the next start keeps either the old or the new ones.
   */
  async replace(
    record: GuestRecord & { readonly rebuilds: number },
    fill: (folder: string, record: GuestRecord) => Promise<void>,
  ): Promise<GuestRecord> {
    const gone = join(this.#root, GONE + record.vmId);
    const path = this.path(record.vmId);
    await this.swept;
    await removeTree(gone);
    await this.#fillNew(record, fill, (unfinished) => {
      fs.renameSync(path, gone);
      try {
        fs.renameSync(unfinished, path);
      } catch (error) {
        fs.renameSync(gone, path);
        throw error;
      }
    });
    await removeTree(gone);
    return record;
  }

  async #fillNew(
    record: GuestRecord,
    fill: (folder: string, record: GuestRecord) => Promise<void>,
    put: (unfinished: string) => void,
  ): Promise<void> {
    const unfinished = join(this.#root, UNFINISHED + record.vmId);
    try {
      if (fs.existsSync(unfinished)) {
        await this.swept;
        await removeTree(unfinished);
      }
      const folder = join(unfinished, GUEST);
      fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
      if (record.uid !== null) fs.chownSync(folder, record.uid, record.uid);
      await fill(folder, record);
      await syncAll(folder);
      writeDurableFile(join(unfinished, RECORD), JSON.stringify(record), 0o600);
      put(unfinished);
      syncFolder(this.#root);
    } catch (error) {
      await removeTree(unfinished);
      throw error;
    }
    this.#records.set(record.vmId, record);
  }

  /** Stores the machine type of the guest. Lost only together with a start that was not acknowledged. */
  setMachine(vmId: string, machine: string): void {
    const before = this.#records.get(vmId);
    if (before === undefined) throw new Error('not a guest of this host');
    this.#rewrite({ ...before, machine });
  }

  #rewrite(record: GuestRecord): void {
    writeDurableFile(this.path(record.vmId, RECORD), JSON.stringify(record), 0o600);
    this.#records.set(record.vmId, record);
  }

  /** Path of the guest's record, relative to the folder of all guests. */
  recordName(vmId: string): string {
    return join(vmId, RECORD);
  }

  run(vmId: string): RunRecord | null {
    return readJson<RunRecord>(this.path(vmId, RUN));
  }

  /** Not synced: no guest survives a power cut. */
  writeRun(vmId: string, run: RunRecord): void {
    const path = this.path(vmId, RUN);
    fs.writeFileSync(`${path}.new`, JSON.stringify(run), { mode: 0o600 });
    fs.renameSync(`${path}.new`, path);
  }

  /**
   * Like writeRun, for a run that is recorded already. Its record only grows, so one write covers
   * all of it, and a crash leaves either. Replacing a file makes file systems write to the disk at
   * once, which would delay a start that is nearly done.
   */
  completeRun(vmId: string, run: RunRecord): void {
    const text = JSON.stringify(run);
    const fd = fs.openSync(this.path(vmId, RUN), 'r+');
    try {
      const covers = fs.fstatSync(fd).size <= Buffer.byteLength(text);
      if (covers) fs.writeSync(fd, text, 0);
      else this.writeRun(vmId, run);
    } finally {
      fs.closeSync(fd);
    }
  }

  /** The ending of that process; null: running, or not recorded. */
  ending(vmId: string, pid: number): Ending | null {
    const ending = readEnding(this.path(vmId, ENDED));
    return ending?.pid === pid ? ending : null;
  }

  /** Removed at once; if we are killed, the next start completes it. No error if missing. */
  async remove(vmId: string): Promise<void> {
    const record = this.#records.get(vmId);
    const gone = join(this.#root, GONE + vmId);
    if (fs.existsSync(this.path(vmId))) fs.renameSync(this.path(vmId), gone);
    this.#records.delete(vmId);
    await removeTree(gone);
    if (record) this.#slots.delete(record.slot);
  }

  #freeSlot(vmId: string): number {
    let slot = createHash('sha256').update(vmId).digest().readUInt32BE(0) % this.#slotCount;
    while (this.#slots.has(slot)) slot = (slot + 1) % this.#slotCount;
    return slot;
  }
}

/** Still our files: the folder has not been handed over yet. */
async function syncAll(folder: string): Promise<void> {
  for (const name of fs.readdirSync(folder)) {
    const file = await open(join(folder, name), 'r');
    await file.sync().finally(() => file.close());
  }
  await syncFolderAsync(folder);
}

/** The disk exists, but the user and hardware of the guest are unknown. */
function damaged(): AppError {
  return new AppError('data_corrupted', "Cloudlet's record of this machine is damaged", {
    hint: `the operator must restore ${RECORD} in the folder of the machine from a copy or a recovery point`,
  });
}

function readJson<T>(path: string): T | null {
  try {
    return JSON.parse(fs.readFileSync(path, 'utf8')) as T;
  } catch {
    return null;
  }
}
