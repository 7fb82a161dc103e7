/** Readings of a run: of the guest where it tells, of its process for the rest. */
import type { GuestSample } from '../../compute/hypervisor.ts';
import { MS_PER_TICK, readStat, residentBytes } from '../host-process/process-identity.ts';
import { BALLOON_ID, DISK_ID } from './arguments.ts';
import type { GuestRun } from './guest-run.ts';

const QMP_MS = 2000;

type Figures = Readonly<Record<string, unknown>>;

/** A count as it is, anything else as null. */
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

/** Processor time of all its processors in this run, ms; null when it is gone. Rejects with QmpError. */
export async function cpuTime(run: GuestRun): Promise<number | null> {
  let ticks = 0;
  for (const thread of await run.vcpuThreads()) {
    const stat = readStat(`${run.identity.pid}/task/${thread}`);
    if (stat === null) return null;
    ticks += stat.cpuTicks;
  }
  return ticks * MS_PER_TICK;
}

/** As the guest's balloon driver reports; a guest without one leaves the time of its last report at 0. */
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
export async function diskFigures(run: GuestRun): Promise<{ read: number | null; write: number | null }> {
  const answer = await run.command('query-blockstats', {}, QMP_MS);
  const disks = answer as readonly { readonly qdev?: unknown; readonly stats: Figures }[];
  const disk = disks.find(({ qdev }) => typeof qdev === 'string' && qdev.includes(DISK_ID));
  return { read: count(disk?.stats.rd_bytes), write: count(disk?.stats.wr_bytes) };
}
