/**
 * Copies of disks beside them, in our folder of the guest, which the guest's process does not reach. A copy
 * has its name only once it is durable, and takes the disk's place by a rename.
 */
import * as fs from 'node:fs';
import { join } from 'node:path';
import type { GuestSnapshots } from '../../../compute/hypervisor.ts';
import { AppError } from '../../../platform/errors.ts';
import { syncFolder } from '../../../platform/files.ts';
import { isId } from '../../../platform/ids.ts';
import { openOwn, removeName } from '../../host-process/foreign-files.ts';
import { FILES } from '../arguments.ts';
import type { GuestFolders, GuestRecord } from '../guests/guest-folders.ts';
import { noQemuImg } from '../program.ts';
import { asDiskError } from './disk.ts';
import { bytesIn, mapOf } from './disk-map.ts';

export interface DiskSnapshotsDeps {
  readonly folders: GuestFolders;
  /** Runs work alone on the guest. */
  readonly inTurn: <T>(vmId: string, work: () => Promise<T>) => Promise<T>;
  readonly runs: { find(vmId: string): unknown };
  /** Path of `qemu-img`; null: not installed. */
  readonly qemuImg: () => Promise<string | null>;
  /** Throws when that many more bytes cannot be stored. */
  readonly assertSpace: (bytes: number) => void;
}

const FOLDER = 'snapshots';
const UNFINISHED = '.new';
/** In the folder of the guest, until it is the disk. */
const NEXT_DISK = 'disk.next';
const BLOCK = 512;
const CHUNK_BYTES = 4 * 1024 * 1024;

export class DiskSnapshots implements GuestSnapshots {
  readonly #deps: DiskSnapshotsDeps;

  constructor(deps: DiskSnapshotsDeps) {
    this.#deps = deps;
  }

  take(vmId: string, snapshotId: string): Promise<{ readonly sizeBytes: number }> {
    return this.#still(vmId, async (_, disk) => {
      const from = openOwn(this.#deps.folders.guestPath(vmId), disk, fs.constants.O_RDONLY);
      try {
        const folder = this.#path(vmId);
        fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
        const unfinished = join(folder, UNFINISHED);
        removeName(unfinished);
        const sizeBytes = await this.#copy(from, unfinished, null);
        fs.renameSync(unfinished, this.#path(vmId, snapshotId));
        syncFolder(folder);
        syncFolder(this.#deps.folders.path(vmId));
        return { sizeBytes };
      } finally {
        fs.closeSync(from);
      }
    });
  }

  restore(vmId: string, snapshotId: string): Promise<void> {
    return this.#still(vmId, async (record, disk) => {
      const path = this.#path(vmId, snapshotId);
      if (!fs.existsSync(path)) throw notHere();
      const from = fs.openSync(path, fs.constants.O_RDONLY);
      try {
        const folder = this.#deps.folders.guestPath(vmId);
        const next = join(folder, NEXT_DISK);
        removeName(next);
        await this.#copy(from, next, record.uid);
        fs.renameSync(next, join(folder, disk));
        syncFolder(folder);
      } finally {
        fs.closeSync(from);
      }
    });
  }

  discard(vmId: string, snapshotId: string): Promise<void> {
    return this.#deps.inTurn(vmId, async () => removeName(this.#path(vmId, snapshotId)));
  }

  async list(vmId: string): Promise<readonly string[]> {
    const folder = this.#path(vmId);
    return fs.existsSync(folder) ? fs.readdirSync(folder).filter((name) => isId('snp', name)) : [];
  }

  takenBytes(vmId: string): number {
    const folder = this.#path(vmId);
    const copies = fs.existsSync(folder) ? fs.readdirSync(folder).map((name) => join(folder, name)) : [];
    const disks = [FILES.rawDisk, FILES.qcow2Disk].map((name) => this.#deps.folders.guestPath(vmId, name));
    const blocks = [...disks, ...copies].map((path) => fs.lstatSync(path, { throwIfNoEntry: false })?.blocks);
    return blocks.reduce<number>((sum, count = 0) => sum + count * BLOCK, 0);
  }

  #path(vmId: string, snapshotId?: string): string {
    if (snapshotId !== undefined && !isId('snp', snapshotId)) throw new Error('not the id of a snapshot');
    return join(this.#deps.folders.path(vmId, FOLDER), snapshotId ?? '');
  }

  /** Works on the disk of a guest that has no process. */
  #still<T>(vmId: string, work: (record: GuestRecord, disk: string) => Promise<T>): Promise<T> {
    const { folders, runs, inTurn } = this.#deps;
    return inTurn(vmId, async () => {
      const record = folders.find(vmId);
      if (record === undefined) throw notHere();
      if (runs.find(vmId) !== null) throw new AppError('internal_error', 'the disk of a machine that runs');
      try {
        return await work(record, record.diskFormat === 'raw' ? FILES.rawDisk : FILES.qcow2Disk);
      } catch (error) {
        throw asDiskError(error);
      }
    });
  }

  /** Copies all but the holes into a new durable file. Returns the bytes that it takes. */
  async #copy(from: number, path: string, owner: number | null): Promise<number> {
    const qemuImg = await this.#deps.qemuImg();
    if (qemuImg === null) throw noQemuImg();
    const { size, blocks } = fs.fstatSync(from);
    this.#deps.assertSpace(blocks * BLOCK);
    const to = await fs.promises.open(path, 'wx', 0o600);
    try {
      await to.truncate(size);
      // Copies the file byte by byte, also a qcow2 file.
      for (const { zero, offset, length } of await mapOf(qemuImg, { fd: from, format: 'raw', uid: null })) {
        if (!zero) await copyRange(from, to, { offset, length });
      }
      if (owner !== null) await to.chown(owner, owner);
      await to.sync();
      return (await to.stat()).blocks * BLOCK;
    } catch (error) {
      removeName(path);
      throw error;
    } finally {
      await to.close();
    }
  }
}

async function copyRange(
  from: number,
  to: fs.promises.FileHandle,
  { offset, length }: { readonly offset: number; readonly length: number },
): Promise<void> {
  const end = offset + length;
  let at = offset;
  for await (const bytes of bytesIn(from, { offset, length }, CHUNK_BYTES)) {
    // A full disk accepts a part without an error; the next write reports it.
    for (let done = 0; done < bytes.length; )
      done += (await to.write(bytes, done, bytes.length - done, at + done)).bytesWritten;
    at += bytes.length;
  }
  if (at !== end) throw new Error('the disk changed while it was copied');
}

function notHere(): AppError {
  return new AppError(
    'disk_missing',
    'The disk of this virtual machine or the snapshot is not on this host',
    {
      hint: 'A restored cloud has no snapshots; restore the machine from a recovery point instead',
    },
  );
}
