/**
 * Finds the holes of a disk, which need not be read, and its backing image. A compromised QEMU may
 * have written the disk's header, so qemu-img runs with the guest's user and the system call
 * filter.
 */
import { execFile, spawn } from 'node:child_process';
import { read } from 'node:fs';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { filtered } from '../../host-process/system-calls.ts';

const run = promisify(execFile);
const readAt = promisify(read);

export interface Extent {
  readonly start: number;
  readonly length: number;
  /** Reads as zeros. */
  readonly zero: boolean;
  /** Offset in the file. */
  readonly offset: number;
}

export interface Mapped {
  readonly fd: number;
  readonly format: string;
  readonly uid: number | null;
}

/** The content of a file, part by part, as the guest's own user reads it. Throws where qemu-img fails. */
export async function mapOf(qemuImg: string, { fd, format, uid }: Mapped): Promise<readonly Extent[]> {
  const args = ['map', '-U', '-f', format, '--output=json', '/proc/self/fd/3'];
  const [program, words] = await filtered([qemuImg, ...args]);
  const child = spawn(program, words, {
    stdio: ['ignore', 'pipe', 'ignore', fd],
    env: { LANG: 'C' },
    ...asUser(uid),
  });
  const ended = new Promise((resolve) => child.once('close', resolve));
  const said = await text(child.stdout as Readable);
  const code = await ended;
  if (code !== 0) throw new Error(`the holes of the disk could not be found: qemu-img ended with ${code}`);
  return JSON.parse(said) as Extent[];
}

/**
 * The bytes of a part of a file. The descriptor stays its owner's: a stream closes it when its reader leaves,
 * whatever `autoClose` says, and a second close would meet another file under the same number.
 */
export async function* bytesIn(
  fd: number,
  { offset, length }: Pick<Extent, 'offset' | 'length'>,
  pieceBytes: number,
): AsyncGenerator<Buffer> {
  for (let at = offset; at < offset + length; ) {
    const wanted = Math.min(pieceBytes, offset + length - at);
    const { bytesRead, buffer } = await readAt(fd, Buffer.allocUnsafe(wanted), 0, wanted, at);
    if (bytesRead === 0) return;
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

/** A disk by the words of qemu-img. */
export interface Described {
  readonly 'virtual-size': number;
  readonly 'backing-filename-format'?: string;
}

/** Describes the qcow2 file `name` in the guest's folder. Rejects where qemu-img fails. */
export async function descriptionOf(
  qemuImg: string,
  { folder, name, uid }: { readonly folder: string; readonly name: string; readonly uid: number | null },
): Promise<Described> {
  const [program, words] = await filtered([qemuImg, 'info', '-U', '--output=json', name]);
  const { stdout } = await run(program, words, { cwd: folder, env: { LANG: 'C' }, ...asUser(uid) });
  return JSON.parse(stdout) as Described;
}

function asUser(uid: number | null): { readonly uid?: number; readonly gid?: number } {
  return uid === null ? {} : { uid, gid: uid };
}
