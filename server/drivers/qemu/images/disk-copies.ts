/**
 * Reads guests' files for a recovery point, and their disks for an export. The disk of a running
 * guest is copied by its QEMU as of one moment (blockdev-backup) into a file that we created in the
 * guest's folder and whose name is removed as soon as QEMU has it open; a stop does not wait for
 * that, and ends it. The disk of a stopped guest is read directly.
 */
import * as fs from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type {
  GuestDisks,
  GuestFile,
  GuestFiles,
  GuestOnImage,
} from '../../../compute/machines/point-machines.ts';
import type { Clock } from '../../../platform/clock.ts';
import { hostBootId } from '../../../platform/host/host-facts.ts';
import { randomName } from '../../../platform/ids.ts';
import { HOLE } from '../../../recovery/repository/chunks.ts';
import { openOwn, removeName } from '../../host-process/foreign-files.ts';
import { FILES } from '../arguments.ts';
import { GUEST, type GuestFolders, type GuestRecord } from '../guests/guest-folders.ts';
import type { GuestRun } from '../guests/guest-run.ts';
import type { GuestRuns } from '../guests/guest-runs.ts';
import { createDisk } from './disk.ts';
import { bytesIn, descriptionOf, type Extent, mapOf } from './disk-map.ts';

export interface DiskCopiesDeps {
  readonly folders: GuestFolders;
  readonly runs: GuestRuns;
  readonly clock: Pick<Clock, 'now'>;
  /** Path of `qemu-img`; null: not installed. */
  readonly qemuImg: () => Promise<string | null>;
  /** Path of an image's file. */
  readonly imagePath: (imageId: string) => string;
  /** Throws when that many more bytes cannot be stored. */
  readonly assertSpace: (bytes: number) => void;
}

const COPY = 'point.img';
const NODE = 'point-';
const POLL_MS = 100;
const BLOCK = 512;
/** The coarsest clock of a file system. */
const TICK_MS = 2000;

export class DiskCopies implements GuestFiles, GuestDisks {
  readonly #deps: DiskCopiesDeps;

  constructor(deps: DiskCopiesDeps) {
    this.#deps = deps;
  }

  filesOf(vmId: string, signal: AbortSignal): readonly GuestFile[] {
    const record = this.#deps.folders.find(vmId);
    if (record === undefined) return [];
    const { slot: _slot, uid: _uid, ...portable } = record;
    const disk = diskOf(record);
    const at = (name: string) => `${vmId}/${GUEST}/${name}`;
    return [
      {
        path: at(disk),
        open: () => this.#disk(record, signal),
        fingerprint: () => this.#fingerprint(record),
      },
      { path: at(FILES.seed), open: async () => this.#still(record, FILES.seed) },
      {
        path: this.#deps.folders.recordName(vmId),
        open: async () => Readable.from([Buffer.from(JSON.stringify(portable))]),
      },
    ];
  }

  disksOf({ vmId, imageId }: GuestOnImage, signal: AbortSignal): readonly GuestFile[] {
    const record = this.#deps.folders.find(vmId);
    if (record === undefined) return [];
    const file = { path: diskOf(record), open: () => this.#disk(record, signal) };
    // Ours, not the guest's name for it, which the guest could change.
    const base = { path: FILES.base, open: async () => this.#image(imageId) };
    return record.diskFormat === 'raw' ? [file] : [file, base];
  }

  /** Only read, never written. */
  async *#image(imageId: string): AsyncGenerator<Uint8Array> {
    const fd = fs.openSync(this.#deps.imagePath(imageId), fs.constants.O_RDONLY);
    try {
      yield* this.#bytesOf(fd, { format: 'raw', uid: null });
    } finally {
      fs.closeSync(fd);
    }
  }

  /**
   * A value that changes with every change of a disk. Every write sets the time of the last change
   * (ctime), which no program can set back. Only a power cut can lose that time and keep the bytes,
   * so the boot is a part of it; and a second write within one tick of the file system's clock does
   * not show, so a file that has just changed has no fingerprint.
   */
  #fingerprint(record: GuestRecord): string | undefined {
    const { folders, runs, clock } = this.#deps;
    const boot = hostBootId();
    if (boot === '' || runs.find(record.vmId) !== null) return undefined;
    const found = fs.lstatSync(folders.guestPath(record.vmId, diskOf(record)), {
      bigint: true,
      throwIfNoEntry: false,
    });
    if (found === undefined || clock.now() - Number(found.ctimeMs) < TICK_MS) return undefined;
    const { dev, ino, size, mtimeNs, ctimeNs } = found;
    return [boot, dev, ino, size, mtimeNs, ctimeNs].join(' ');
  }

  async #disk(record: GuestRecord, signal: AbortSignal): Promise<AsyncIterable<Uint8Array> | undefined> {
    const { folders, runs } = this.#deps;
    if (folders.find(record.vmId) === undefined) return undefined;
    const run = runs.find(record.vmId);
    return run === null ? this.#still(record, diskOf(record)) : this.#copied(record, run, signal);
  }

  /** A file that must not change while it is read; otherwise the reader gets an error. */
  async *#still(record: GuestRecord, name: string): AsyncGenerator<Uint8Array> {
    const { folders, runs } = this.#deps;
    const fd = openOwn(folders.guestPath(record.vmId), name, fs.constants.O_RDONLY);
    try {
      const before = fs.fstatSync(fd, { bigint: true });
      yield* this.#bytesOf(fd, { format: 'raw', uid: record.uid });
      const after = fs.fstatSync(fd, { bigint: true });
      const isSame = before.mtimeNs === after.mtimeNs && before.size === after.size;
      if (!isSame || (name !== FILES.seed && runs.find(record.vmId) !== null)) {
        throw new Error('the machine was started while its disk was read');
      }
    } finally {
      // The reader may have gone: an export that its caller cancelled.
      fs.closeSync(fd);
    }
  }

  async *#copied(record: GuestRecord, run: GuestRun, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const { folders, assertSpace } = this.#deps;
    const folder = folders.guestPath(record.vmId);
    const disk = fs.statSync(join(folder, diskOf(record)));
    assertSpace(disk.blocks * BLOCK);
    await endJobs(run);
    removeName(join(folder, COPY));
    let fd: number | undefined;
    try {
      await this.#makeTarget(record, folder, disk.size);
      fd = openOwn(folder, COPY, fs.constants.O_RDONLY);
      await backup(run, { record, folder, signal });
      // The copy of a raw disk is a qcow2 file, in which zeros take no space, and is read through
      // its contents.
      yield* this.#bytesOf(fd, { format: record.diskFormat === 'raw' ? 'qcow2' : 'raw', uid: record.uid });
    } finally {
      if (fd !== undefined) fs.closeSync(fd);
      removeName(join(folder, COPY));
    }
  }

  /** Skips holes, which make up most of most disks. */
  async *#bytesOf(fd: number, how: { readonly format: string; readonly uid: number | null }) {
    const { size, blocks } = fs.fstatSync(fd);
    const isPlain = how.format === 'raw' && blocks * BLOCK >= size;
    const qemuImg = isPlain ? null : await this.#deps.qemuImg();
    const whole = { start: 0, length: size, zero: false, offset: 0 };
    const parts = qemuImg === null ? [whole] : await mapOf(qemuImg, { ...how, fd });
    for (const part of parts) yield* part.zero ? zeros(part) : bytesIn(fd, part, HOLE.length);
  }

  async #makeTarget({ diskFormat, uid }: GuestRecord, folder: string, bytes: number): Promise<void> {
    const qemuImg = await this.#deps.qemuImg();
    if (qemuImg === null) throw new Error('qemu-img is not installed');
    const about = { name: COPY, owner: uid, qemuImg };
    if (diskFormat === 'raw') return createDisk(folder, { ...about, format: null, size: String(bytes) });
    const disk = await descriptionOf(qemuImg, { folder, name: FILES.qcow2Disk, uid });
    const format = disk['backing-filename-format'] === 'raw' ? 'raw' : 'qcow2';
    await createDisk(folder, { ...about, format, size: String(disk['virtual-size']) });
  }
}

function* zeros({ start, length }: Extent): Generator<Uint8Array> {
  const end = start + length;
  // Aligned to the next block.
  let at = Math.min(end, Math.ceil(start / HOLE.length) * HOLE.length);
  if (at > start) yield HOLE.subarray(0, at - start);
  for (; at + HOLE.length <= end; at += HOLE.length) yield HOLE;
  if (at < end) yield HOLE.subarray(0, end - at);
}

function diskOf({ diskFormat }: GuestRecord): string {
  return diskFormat === 'raw' ? FILES.rawDisk : FILES.qcow2Disk;
}

interface Job {
  readonly id: string;
  readonly status: string;
  readonly error?: string;
}

/** Resolves when the target has the whole disk. The target's name is removed by then. */
async function backup(
  run: GuestRun,
  how: { readonly record: GuestRecord; readonly folder: string; readonly signal: AbortSignal },
): Promise<void> {
  const { record, folder, signal } = how;
  const isRaw = record.diskFormat === 'raw';
  const node = NODE + randomName(8);
  const file = { driver: 'file', filename: COPY };
  await run.command('blockdev-add', { driver: 'qcow2', 'node-name': node, file, backing: null });
  removeName(join(folder, COPY));
  try {
    await run.command('blockdev-backup', {
      'job-id': node,
      device: 'disk',
      target: node,
      'auto-dismiss': false,
      sync: isRaw ? 'full' : 'top',
    });
    await concluded(run, node, signal);
  } finally {
    await endJobs(run).catch(() => {});
  }
}

async function concluded(run: GuestRun, id: string, signal: AbortSignal): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    const job = (await jobs(run)).find((one) => one.id === id);
    if (job === undefined) throw new Error('the copy of the disk is missing');
    if (job.status === 'concluded') {
      if (job.error !== undefined) throw new Error(`the disk could not be copied: ${job.error}`);
      return;
    }
    await sleep(POLL_MS);
  }
}

async function jobs(run: GuestRun): Promise<readonly Job[]> {
  return ((await run.command('query-jobs')) as readonly Job[]).filter(({ id }) => id.startsWith(NODE));
}

/** Ends copies, including those of a killed Cloudlet. */
async function endJobs(run: GuestRun): Promise<void> {
  for (;;) {
    const left = await jobs(run);
    if (left.length === 0) break;
    for (const { id, status } of left) {
      if (status === 'concluded') await run.command('job-dismiss', { id });
      else await run.command('block-job-cancel', { device: id, force: true }).catch(() => {});
    }
    await sleep(POLL_MS);
  }
  const nodes = (await run.command('query-named-block-nodes', { flat: true })) as readonly {
    'node-name': string;
  }[];
  for (const { 'node-name': name } of nodes) {
    if (name.startsWith(NODE)) await run.command('blockdev-del', { 'node-name': name });
  }
}
