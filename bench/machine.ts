/** The speed of the host itself, so that the table's numbers can be compared elsewhere. */
import { cpus } from 'node:os';
import { join } from 'node:path';
import { runChild } from './child.ts';
import { formatBytes } from './table.ts';

const HASHER = new URL('./children/hasher.ts', import.meta.url);
const DISK_PROBE = new URL('./children/disk-probe.ts', import.meta.url);
const BYTES = 64 * 2 ** 20;

interface Disk {
  readonly medianMs: number;
  readonly p99Ms: number;
  readonly bytesPerSecond: number;
}

/** A paragraph with the host's own limits, measured now. */
export async function describeMachine(folder: string): Promise<string> {
  const speeds: string[] = [];
  for (const work of ['md5', 'crc32', 'aes-256-gcm']) {
    const { bytesPerSecond } = await runChild<{ bytesPerSecond: number }>(HASHER, { work, bytes: BYTES });
    speeds.push(`${work.toUpperCase()} ${formatBytes(bytesPerSecond)}/s`);
  }
  const disk = await runChild<Disk>(DISK_PROBE, { path: join(folder, 'probe') });
  const processors = cpus();
  return [
    `Machine: ${processors.length} cores (${processors[0]?.model.trim() ?? 'unknown'}), Node ${process.version}.`,
    `One core: ${speeds.join(', ')}.`,
    `Disk: 4 KiB write + fdatasync ${disk.medianMs.toFixed(2)} ms (p99 ${disk.p99Ms.toFixed(2)} ms),`,
    `sequential write ${formatBytes(disk.bytesPerSecond)}/s.`,
  ].join('\n');
}
