/**
 * The series of the process, the host and the engines, for Prometheus. Names of the process are those of
 * Prometheus' client libraries.
 */
import { readdirSync } from 'node:fs';
import type { Alarms } from '../platform/alarms.ts';
import type { Clock } from '../platform/clock.ts';
import { readHostMemory } from '../platform/host/host-facts.ts';
import type { Meters } from '../platform/prometheus.ts';
import type { HostMetrics } from './host-metrics.ts';
import type { ComputeStatus, DatabaseEngineStatus, StoreEngines } from './status.ts';

export interface SystemMetersDeps {
  readonly clock: Clock;
  readonly alarms: Alarms;
  readonly version: string;
  readonly stores: StoreEngines;
  readonly host: Pick<HostMetrics, 'disk' | 'read'>;
  readonly compute: () => Promise<ComputeStatus>;
  readonly databases: () => Promise<readonly DatabaseEngineStatus[]>;
}

const MICROSECONDS = 1e6;

export function meterSystem(meters: Meters, deps: SystemMetersDeps): void {
  meterProcess(meters, deps.clock);
  const { alarms, version, stores, host } = deps;
  const gauge = (name: string, help: string, read: () => number) =>
    meters.gauge(`cloudlet_${name}`, { help, type: 'gauge', read });
  gauge('disk_free_bytes', 'Free space of the data directory', () => host.disk?.freeBytes ?? Number.NaN);
  gauge(
    'disk_size_bytes',
    'Size of the file system of the data directory',
    () => host.disk?.totalBytes ?? Number.NaN,
  );
  gauge('host_memory_available_bytes', 'Available memory of the host', () => {
    return readHostMemory().availableBytes;
  });
  gauge('host_memory_size_bytes', 'Memory of the host', () => readHostMemory().totalBytes);
  gauge('host_cpu_busy_ratio', 'Share of all cores that was busy, 0 to 1', () => host.read().cpu / 100);
  gauge('alarms', 'Active alarms', () => alarms.list().length);
  const common = { type: 'gauge', isPublic: true } as const;
  meters.series('cloudlet_alarm', {
    ...common,
    help: '1 while the alarm is active; /api/system/status has its text',
    labels: ['code'],
    read: () => alarms.list().map(({ code }) => ({ labels: [code], value: 1 })),
  });
  meters.series('cloudlet_build_info', {
    ...common,
    help: 'Version of Cloudlet, and where metadata and objects are stored',
    labels: ['version', 'node', 'metadata', 'storage'],
    read: () => [{ labels: [version, process.versions.node, stores.metadata, stores.storage], value: 1 }],
  });
  meterEngines(meters, deps);
}

/** An engine that this host does not have, or not yet, has no sample, so that it causes no alert. */
function meterEngines(meters: Meters, { alarms, compute, databases }: SystemMetersDeps): void {
  const common = { type: 'gauge', isPublic: true } as const;
  meters.askedSeries('cloudlet_database_engine_up', {
    ...common,
    help: '1 while the engine can serve databases, 0 while it is unavailable',
    labels: ['engine'],
    ask: async () => {
      const isAway = (engine: string) => alarms.list().some(({ code }) => code === `${engine}_unavailable`);
      return (await databases()).flatMap(({ engine, available }) =>
        available || isAway(engine)
          ? [{ labels: [engine], value: available && !isAway(engine) ? 1 : 0 }]
          : [],
      );
    },
  });
  meters.askedSeries('cloudlet_hypervisor_up', {
    ...common,
    help: '1 while virtual machines can run; missing where there is no hypervisor',
    labels: [],
    ask: async () => {
      const { isUsable } = await compute();
      return isUsable ? [{ labels: [], value: 1 }] : [];
    },
  });
}

function meterProcess(meters: Meters, clock: Clock): void {
  // Taken less than a second after the start of the process.
  const startedAt = clock.now() / 1000;
  meters.gauge('process_cpu_seconds_total', {
    help: 'Processor time of this process, user and system',
    type: 'counter',
    read: () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / MICROSECONDS;
    },
  });
  meters.gauge('process_resident_memory_bytes', {
    help: 'Memory of this process',
    type: 'gauge',
    read: () => process.memoryUsage.rss(),
  });
  meters.gauge('process_start_time_seconds', {
    help: 'Start time of this process, seconds since 1970',
    type: 'gauge',
    read: () => startedAt,
  });
  meters.askedSeries('process_open_fds', {
    help: 'Open file descriptors',
    type: 'gauge',
    labels: [],
    isPublic: true,
    // Only available on Linux.
    ask: async () => [{ labels: [], value: readdirSync('/proc/self/fd').length }],
  });
}
