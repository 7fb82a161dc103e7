/** What Prometheus is told of databases. */
import type { Meters } from '../platform/prometheus.ts';
import type { EngineWork, Sampler } from './sampler.ts';

export function meterDatabases(meters: Meters, sampler: Pick<Sampler, 'counts' | 'work'>): void {
  meters.series('cloudlet_databases', {
    help: 'Databases by engine and state',
    type: 'gauge',
    labels: ['engine', 'state'],
    read: () =>
      sampler.counts().map(({ engine, state, count }) => ({ labels: [engine, state], value: count })),
  });
  const byEngine = (read: (work: EngineWork) => number) => () =>
    [...sampler.work()].map(([engine, work]) => ({ labels: [engine], value: read(work) }));
  meters.series('cloudlet_database_statements_total', {
    help: 'Statements that databases ran',
    type: 'counter',
    labels: ['engine'],
    read: byEngine(({ statements }) => statements),
  });
  meters.series('cloudlet_database_connections', {
    help: 'Sessions of databases, or statements under way',
    type: 'gauge',
    labels: ['engine'],
    read: byEngine(({ connections }) => connections),
  });
}
