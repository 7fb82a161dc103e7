/** Creates a guest's disk and seed, and its boot files. */
import { execFile } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { AppError } from '../../../platform/errors.ts';
import { patienceMs } from '../../../platform/host/host-facts.ts';
import { openOwn, removeName } from '../../host-process/foreign-files.ts';
import { filtered } from '../../host-process/system-calls.ts';
import { FILES } from '../arguments.ts';
import { noQemuImg } from '../program.ts';
import { type SeedSpec, seedImage } from './seed.ts';

const run = promisify(execFile);
const GIB = 1024 ** 3;
const QEMU_IMG_MS = 60_000;

/** Owner of a guest's files; null: our own user. */
type Owner = number | null;

/** `error` as an AppError, with a separate code for a full disk. */
export function asDiskError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  const { code, stderr } = error as { code?: unknown; stderr?: unknown };
  const isFull = code === 'ENOSPC' || code === 'EDQUOT' || /No space left|quota/i.test(String(stderr ?? ''));
  return isFull
    ? new AppError('out_of_space', 'no space for the disk of the virtual machine', { cause: error })
    : new AppError('internal_error', 'the disk of the virtual machine cannot be created', { cause: error });
}

/** Writes a file of the guest, which must not exist, by its descriptor. */
function writeFile(path: string, owner: Owner, write: (fd: number) => void): void {
  const fd = fs.openSync(path, 'wx', 0o600);
  try {
    write(fd);
    // Opened by descriptor, because the guest may replace the name.
    if (owner !== null) fs.fchownSync(fd, owner, owner);
  } finally {
    fs.closeSync(fd);
  }
}

export function writeSeed(folder: string, spec: SeedSpec, owner: Owner): void {
  const path = join(folder, FILES.seed);
  removeName(path);
  writeFile(path, owner, (fd) => fs.writeFileSync(fd, seedImage(spec)));
}

/** An empty disk: a sparse file. */
export function createRawDisk(folder: string, diskGb: number, owner: Owner): void {
  writeFile(join(folder, FILES.rawDisk), owner, (fd) => fs.ftruncateSync(fd, diskGb * GIB));
}

/**
 * Gives the guest read access to a file of ours: the same file under another name, or a copy if
 * that is impossible or its own user could not read it.
 */
export function lendFile(source: string, target: string, owner: Owner): void {
  removeName(target);
  const isReadable = owner === null || (fs.statSync(source).mode & 0o004) !== 0;
  if (isReadable) {
    try {
      fs.linkSync(source, target);
      return;
    } catch (error) {
      if (!['EXDEV', 'EPERM', 'EMLINK'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    }
  }
  copyFile(source, target, owner);
}

/** Copies through descriptors' paths, which others cannot change. */
function copyFile(source: string, target: string, owner: Owner): void {
  try {
    writeFile(target, owner, (fd) => {
      fs.copyFileSync(source, `/proc/self/fd/${fd}`, fs.constants.COPYFILE_FICLONE);
    });
  } catch (error) {
    removeName(target);
    throw error;
  }
}

export interface GrowOptions {
  readonly format: 'raw' | 'qcow2';
  readonly diskGb: number;
  readonly owner: Owner;
  /** Path of `qemu-img`; null: not installed. */
  readonly qemuImg: () => Promise<string | null>;
}

/**
 * Grows the disk of a guest that does not run, unless it has that size. If Cloudlet is killed in between, the
 * disk has either the old or the new size: the last write is the one that sets the size.
 */
export async function growDisk(folder: string, { format, diskGb, owner, qemuImg }: GrowOptions) {
  const name = format === 'raw' ? FILES.rawDisk : FILES.qcow2Disk;
  const fd = openOwn(folder, name, fs.constants.O_RDWR);
  try {
    const bytes = diskGb * GIB;
    if (format === 'raw') {
      if (fs.fstatSync(fd).size >= bytes) return;
      fs.ftruncateSync(fd, bytes);
      return fs.fsyncSync(fd);
    }
    const header = Buffer.alloc(QCOW2_SIZE + 8);
    fs.readSync(fd, header, 0, header.length, 0);
    // QEMU describes a damaged disk better.
    const isQcow2 = header.toString('latin1', 0, 4) === 'QFI\xfb';
    if (!isQcow2 || header.readBigUInt64BE(QCOW2_SIZE) >= BigInt(bytes)) return;
  } finally {
    fs.closeSync(fd);
  }
  const program = await qemuImg();
  if (program === null) throw noQemuImg();
  await asOwner([program, 'resize', '-q', '-f', 'qcow2', name, `${diskGb}G`], { folder, owner });
}

/** Where the header of a qcow2 file has its virtual size. */
const QCOW2_SIZE = 24;

/**
 * The size that a guest sees, bytes. Refuses an image that names other files, because those would be
 * Cloudlet's.
 */
export function virtualBytes(path: string, format: 'raw' | 'qcow2'): number {
  if (format === 'raw') return fs.statSync(path).size;
  const header = Buffer.alloc(104);
  const fd = fs.openSync(path, 'r');
  try {
    fs.readSync(fd, header, 0, header.length, 0);
  } finally {
    fs.closeSync(fd);
  }
  const isQcow2 = header.toString('latin1', 0, 4) === 'QFI\xfb';
  const hasBacking = header.readBigUInt64BE(8) !== 0n;
  // Bit 2 of the incompatible features: the data is in another file.
  const hasDataFile = header.readUInt32BE(4) >= 3 && (header.readBigUInt64BE(72) & 4n) !== 0n;
  if (!isQcow2 || hasBacking || hasDataFile) {
    throw new AppError('internal_error', 'the image is damaged or needs other files');
  }
  return Number(header.readBigUInt64BE(24));
}

export interface OverlayOptions {
  /** The image; only read, never written. */
  readonly base: string;
  readonly format: 'raw' | 'qcow2';
  readonly diskGb: number;
  readonly owner: Owner;
  /** Path of `qemu-img`. */
  readonly qemuImg: string;
}

/** A disk of `diskGb` that stores only differences from the image. */
export async function createOverlay(folder: string, options: OverlayOptions): Promise<void> {
  const { base, format, diskGb, owner, qemuImg } = options;
  if (!fs.existsSync(base)) throw new AppError('internal_error', 'the file of the image is missing');
  const imageGb = Math.ceil(virtualBytes(base, format) / GIB);
  if (imageGb > diskGb) {
    throw new AppError('invalid_request', `the image needs a disk of ${imageGb} GB, this type has ${diskGb}`);
  }
  lendBase(folder, base, owner);
  await createDisk(folder, { name: FILES.qcow2Disk, format, size: `${diskGb}G`, owner, qemuImg });
}

/** Gives the guest access to its base image. */
export function lendBase(folder: string, base: string, owner: Owner): void {
  if (owner !== null) fs.chmodSync(base, 0o444);
  lendFile(base, join(folder, FILES.base), owner);
}

interface NewDisk {
  readonly name: string;
  /** The format of the image that it differs from, as lent to the guest; null: of none. */
  readonly format: 'raw' | 'qcow2' | null;
  /** The size in qemu-img's format. */
  readonly size: string;
  readonly owner: Owner;
  readonly qemuImg: string;
}

/** A qcow2 disk in the guest's folder. */
export async function createDisk(folder: string, disk: NewDisk): Promise<void> {
  const { name, format, size, owner, qemuImg } = disk;
  const backing = format === null ? [] : ['-b', FILES.base, '-F', format];
  await asOwner([qemuImg, 'create', '-q', '-f', 'qcow2', ...backing, name, size], { folder, owner });
}

/** Runs a program on files of a guest, with no more power than the guest. */
async function asOwner(
  command: readonly string[],
  { folder, owner }: { readonly folder: string; readonly owner: Owner },
): Promise<void> {
  const [program, words] = await filtered(command);
  await run(program, words, {
    cwd: folder,
    timeout: patienceMs(QEMU_IMG_MS),
    env: { LANG: 'C' },
    ...(owner === null ? {} : { uid: owner, gid: owner }),
  });
}
