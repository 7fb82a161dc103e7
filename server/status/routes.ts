/** Status, health, metrics, and the operator's maintenance calls. */
import { permits } from '../calls/principal.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { AppError } from '../platform/errors.ts';
import { namedObject, Type } from '../platform/json/json-schema.ts';
import type { Meters } from '../platform/prometheus.ts';
import { KeyRotation, ScrubReport, SystemStatus } from './schema.ts';
import type { Status, WithFailure } from './status.ts';

interface Scrubs {
  status(): Promise<{ running: boolean }>;
  damage(): Promise<unknown[]>;
  databaseDamage(): unknown[];
  bucketDamage(): Promise<unknown[]>;
  run(options: { bytesPerSecond: number; fresh: boolean }): Promise<void>;
}

export interface SystemRoutesDeps {
  readonly status: Status<unknown, WithFailure>;
  readonly meters: Meters;
  readonly scrubber: Scrubs;
  readonly rotateMasterKey: () => Promise<{ key_id: string; resealed: number }>;
  /** Called for a job that failed after its response was sent. */
  readonly onJobError: (job: string, error: unknown) => void;
}

export function systemRoutes(deps: SystemRoutesDeps): Route[] {
  return [...healthRoutes(deps), ...maintenanceRoutes(deps)];
}

function healthRoutes({ status, meters }: SystemRoutesDeps): Route[] {
  const common = { method: 'GET', tag: 'system', permission: 'public' } as const;
  const Health = namedObject('Health', { status: Type.Literal('ok') });
  return [
    defineRoute({
      ...common,
      path: '/api/system/status',
      name: 'getSystemStatus',
      summary: 'Status of the cloud, with CPU, memory and disk usage of the host in percent',
      description:
        'Alarms about an account are shown in full to administrators and to that account. ' +
        'Other callers only see that there is an alarm.',
      knowsCaller: true,
      responses: { 200: SystemStatus },
      handler: ({ principal }) => {
        const accountId = permits(principal, 'databases:read') ? principal.accountId : 0;
        return status.read({ accountId, seesAll: permits(principal, 'admin:read') });
      },
    }),
    defineRoute({
      ...common,
      path: '/healthz',
      usesReserve: true,
      name: 'getHealth',
      summary: 'Liveness check: responds while the process runs',
      responses: { 200: Health },
      handler: () => ({ status: 'ok' }),
    }),
    defineRoute({
      ...common,
      path: '/readyz',
      usesReserve: true,
      name: 'getReadiness',
      summary: 'Readiness check: 200 while both ports listen, and reads and writes can be served',
      responses: { 200: Health },
      errors: ['starting', 'shutting_down', 'draining', 'node_cut_off', 'read_only'],
      handler: () => {
        status.assertReady();
        return { status: 'ok' };
      },
    }),
    defineRoute({
      ...common,
      path: '/metrics',
      name: 'getMetrics',
      summary: "Counters in Prometheus' text format",
      responses: { 200: Type.String() },
      produces: 'text',
      handler: () => meters.render(),
    }),
    defineRoute({
      method: 'GET',
      path: '/api/admin/metrics',
      name: 'adminGetMetrics',
      tag: 'admin',
      summary: 'Metrics of /metrics, and of each virtual machine',
      description: "For Prometheus with an administrator's key as bearer token.",
      permission: 'admin:read',
      responses: { 200: Type.String() },
      produces: 'text',
      handler: () => meters.render({ details: true }),
    }),
  ];
}

function maintenanceRoutes({ scrubber, rotateMasterKey, onJobError }: SystemRoutesDeps): Route[] {
  const report = async () => ({
    ...(await scrubber.status()),
    damaged: await scrubber.damage(),
    damaged_buckets: await scrubber.bucketDamage(),
    damaged_databases: scrubber.databaseDamage(),
  });
  const common = { tag: 'admin', permission: 'admin' } as const;
  return [
    defineRoute({
      ...common,
      method: 'POST',
      path: '/api/admin/scrub',
      name: 'startScrub',
      livesOn: 'host',
      summary: 'Start a scrub that verifies all stored data; poll its report',
      responses: { 200: ScrubReport },
      errors: ['job_running'],
      handler: async () => {
        if ((await scrubber.status()).running)
          throw new AppError('job_running', 'A scrub is already running');
        scrubber
          .run({ bytesPerSecond: Number.POSITIVE_INFINITY, fresh: true })
          .catch((error) => onJobError('scrub', error));
        return report();
      },
    }),
    defineRoute({
      ...common,
      method: 'GET',
      permission: 'admin:read',
      path: '/api/admin/scrub',
      name: 'getScrub',
      livesOn: 'host-or-any',
      summary: 'Report of the current or last scrub, with damaged files',
      responses: { 200: ScrubReport },
      handler: report,
    }),
    defineRoute({
      ...common,
      method: 'POST',
      path: '/api/admin/master-key/rotate',
      name: 'rotateMasterKey',
      summary: 'Rotate the master key and re-encrypt all secrets',
      responses: { 200: KeyRotation },
      errors: ['point_in_progress', 'other_nodes_run'],
      handler: rotateMasterKey,
    }),
  ];
}
