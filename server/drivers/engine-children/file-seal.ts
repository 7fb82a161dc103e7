/**
 * Checksum of a closed database file, in a file beside it: SQLite has none of its own and would read a
 * flipped bit as data. An open file is not covered, nor one whose child was killed, until it is closed the
 * next time.
 */
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';
import { DamagedData } from '../../../libs/sqlite/index.ts';
import { syncFolder, writeDurableFile } from '../../platform/files.ts';

const SEAL = 'seal';
const BLOCK_BYTES = 4 * 2 ** 20;
/** Checksumming more would take longer than a process may take to end. */
const MAX_BYTES = 2 ** 30;

interface Seal {
  readonly bytes: number;
  readonly crc32: number;
}

/** Call after everything was written back and closed. */
export function sealFile(path: string): void {
  if (fs.existsSync(`${path}-wal`) || fs.statSync(path).size > MAX_BYTES) return;
  writeDurableFile(sealPath(path), JSON.stringify(measure(path)), 0o600);
}

/**
 * Call before the file is opened: durably removes the seal before anything is written. Throws
 * DamagedData, and keeps the seal, if the file differs from the sealed one.
 */
export function breakSeal(path: string): void {
  const seal = readSeal(sealPath(path));
  if (seal === null) return;
  const { bytes, crc32 } = measure(path);
  if (bytes !== seal.bytes || crc32 !== seal.crc32)
    throw new DamagedData('the checksum of the file does not match');
  fs.rmSync(sealPath(path));
  syncFolder(dirname(path));
}

function measure(path: string): Seal {
  const fd = fs.openSync(path, 'r');
  try {
    const block = Buffer.allocUnsafe(BLOCK_BYTES);
    let [bytes, sum] = [0, 0];
    for (let read = -1; read !== 0; bytes += read) {
      read = fs.readSync(fd, block, 0, BLOCK_BYTES, null);
      sum = crc32(block.subarray(0, read), sum);
    }
    return { bytes, crc32: sum };
  } finally {
    fs.closeSync(fd);
  }
}

/** null: no seal. */
function readSeal(path: string): Seal | null {
  try {
    return JSON.parse(fs.readFileSync(path, 'utf8')) as Seal;
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

function sealPath(path: string): string {
  return join(dirname(path), SEAL);
}
