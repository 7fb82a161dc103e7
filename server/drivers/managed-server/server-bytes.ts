/** Disk usage of a server: everything it stores, for any of its databases. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { hostPath } from '../../platform/host/host-programs.ts';

/** A circular log: its size up to this many bytes is the engine's own, not the account's. */
export interface LogRing {
  /** Folder of the log, in the home of the server. */
  readonly folder: string;
  readonly freeBytes: number;
}

/** Above this sum, the limits of a server's databases endanger others instead of protecting them. */
const FAR_BEYOND = 1.2;
const SPARE_BYTES = 256 * 2 ** 20;

/** A log message on how far a server exceeds its databases' limits; null: it does not. */
export function excessOf(bytes: number, limitBytes: number): string | null {
  if (bytes <= limitBytes * FAR_BEYOND + SPARE_BYTES) return null;
  const [takes, may] = [bytes, limitBytes].map((each) => `${Math.ceil(each / 2 ** 20)} MB`);
  return `the server uses ${takes} of disk, and the limit of its databases is ${may}`;
}

/**
 * Bytes of the blocks below `home`, without those allowed for `ring`. Uses du: a server has
 * thousands of files, and counting them must not delay other work. Throws if du fails.
 */
export async function serverBytes(home: string, ring: LogRing | null): Promise<number> {
  // du counts a file once: the log's folder first.
  const paths = ring === null ? [home] : [join(home, ring.folder), home];
  const how = { env: { PATH: hostPath(), LC_ALL: 'C' } };
  const { stdout } = await promisify(execFile)('du', ['-s', '-B1', '--', ...paths], how).catch((error) => {
    // Files may vanish while it counts; it reports them and counts the others.
    if (typeof error.stdout === 'string' && error.stdout.trim() !== '') return { stdout: error.stdout };
    throw error;
  });
  const counted = stdout
    .trim()
    .split('\n')
    .map((line: string) => Number.parseInt(line, 10));
  const all = counted.at(-1) ?? 0;
  return ring === null ? all : all + Math.max(0, (counted[0] ?? 0) - ring.freeBytes);
}

/** Bytes of a database: its own, and its share of the server's other data. */
export function withShare(
  ownBytes: number,
  server: { readonly bytes: number; readonly own: readonly number[] },
): number {
  const sum = server.own.reduce((total, bytes) => total + bytes, 0);
  const more = Math.max(0, server.bytes - sum);
  const share = sum > 0 ? ownBytes / sum : 1 / Math.max(1, server.own.length);
  return Math.round(ownBytes + more * share);
}
