/** Readings of a run: from the guest if it reports, else from its process; and whether it is active. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { GuestSample } from '../../compute/hypervisor.ts';
import { MS_PER_TICK, readStat, residentBytes } from '../host-process/process-identity.ts';
import { BALLOON_ID, DISK_ID } from './arguments.ts';
import { consoleBytes } from './guests/guest-console.ts';
import type { GuestRun } from './guests/guest-run.ts';

const QMP_MS = 2000;
const STEP_MS = 500;

type Figures = Readonly<Record<string, unknown>>;

/** A valid count; anything else becomes null. */
function count(value: unknown): number | null {
  return typeof value === 'number' && value >= 0 ? value : null;
}

/** A reading that fails leaves its figures null. */
export async function sampleRun(run: GuestRun, at: number): Promise<GuestSample> {
  const orNull = <T>(reading: Promise<T>) => reading.catch(() => null);
  const [cpuMs, memory, disk] = await Promise.all([
    orNull(cpuTime(run)),
    orNull(memoryFigures(run)),
    orNull(diskFigures(run)),
  ]);
  return {
    at,
    cpuMs,
    memoryUsedBytes: memory?.used ?? null,
    memoryTotalBytes: memory?.total ?? null,
    residentBytes: residentBytes(run.identity.pid),
    diskReadBytes: disk?.read ?? null,
    diskWriteBytes: disk?.write ?? null,
    // QEMU's user network counts nothing; compute counts what passes its ingress.
    networkRxBytes: null,
    networkTxBytes: null,
  };
}

/** CPU time of all its vCPUs in this run, ms; null when it is gone. Rejects with QmpError. */
async function cpuTime(run: GuestRun): Promise<number | null> {
  let ticks = 0;
  for (const thread of await run.vcpuThreads()) {
    const stat = readStat(`${run.identity.pid}/task/${thread}`);
    if (stat === null) return null;
    ticks += stat.cpuTicks;
  }
  return ticks * MS_PER_TICK;
}

/** Reports of the guest's balloon driver; without one the time of the last report stays 0. */
async function memoryFigures(run: GuestRun): Promise<{ used: number | null; total: number | null }> {
  const path = `/machine/peripheral/${BALLOON_ID}`;
  const answer = (await run.command('qom-get', { path, property: 'guest-stats' }, QMP_MS)) as Figures | null;
  if (!answer?.['last-update']) return { used: null, total: null };
  const stats = answer.stats as Figures;
  const total = count(stats['stat-total-memory']);
  const free = count(stats['stat-available-memory']) ?? count(stats['stat-free-memory']);
  return { used: total === null || free === null ? null : total - free, total };
}

/** Bytes that the guest moved from and to its disk in this run. Rejects with QmpError. */
async function diskFigures(run: GuestRun): Promise<{ read: number | null; write: number | null }> {
  const answer = await run.command('query-blockstats', {}, QMP_MS);
  const disks = answer as readonly { readonly qdev?: unknown; readonly stats: Figures }[];
  const disk = disks.find(({ qdev }) => typeof qdev === 'string' && qdev.includes(DISK_ID));
  return { read: count(disk?.stats.rd_bytes), write: count(disk?.stats.wr_bytes) };
}

interface FirstSignOptions {
  /** The guest's. */
  readonly folder: string;
  /** Size of the console's log before this run, bytes. */
  readonly logBytes: number;
  /** CPU time: on a busy host a guest still gets its full time. */
  readonly withinCpuMs: number;
  /** Any time. */
  readonly withinMs: number;
  /** Aborted when the caller is gone. */
  readonly signal: AbortSignal;
}

/**
 * True as soon as the guest wrote to its console or read its disk, which the firmware does first. A
 * guest that did neither in that time executes nothing, or a thousand times too slowly; as it
 * cannot have written anything either, ending it loses nothing. Also true if the process ends, or
 * nobody waits: then nothing needs to be done.
 */
export async function showsLife(run: GuestRun, options: FirstSignOptions): Promise<boolean> {
  const { folder, logBytes, withinCpuMs, withinMs, signal } = options;
  for (let waited = 0; ; waited += STEP_MS) {
    if (signal.aborted || !run.isAlive || consoleBytes(folder) !== logBytes) return true;
    const disk = await diskFigures(run).catch(() => null);
    if (disk !== null && ((disk.read ?? 0) > 0 || (disk.write ?? 0) > 0)) return true;
    const cpuMs = await cpuTime(run).catch(() => null);
    if (waited >= withinMs || (cpuMs ?? 0) >= withinCpuMs) return signal.aborted || !run.isAlive;
    await sleep(STEP_MS, undefined, { signal, ref: false }).catch(() => {});
  }
}
