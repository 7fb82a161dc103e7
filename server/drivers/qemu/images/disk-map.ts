/** Where the holes of a disk are, which need not be read. */
import { spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';

export interface Extent {
  readonly start: number;
  readonly length: number;
  /** Reads as zeros. */
  readonly zero: boolean;
  /** Where in the file. */
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
  const user = uid === null ? {} : { uid, gid: uid };
  const child = spawn(qemuImg, args, {
    stdio: ['ignore', 'pipe', 'ignore', fd],
    env: { LANG: 'C' },
    ...user,
  });
  const ended = new Promise((resolve) => child.once('close', resolve));
  const said = await text(child.stdout as Readable);
  const code = await ended;
  if (code !== 0) throw new Error(`the holes of the disk could not be found: qemu-img ended with ${code}`);
  return JSON.parse(said) as Extent[];
}
