/** A database's current metrics and their history of an hour and a month. */

import type { Principal } from '../../calls/principal.ts';
import { historyOf, type RangeText, readRange } from '../../metadata/sample-history.ts';
import { type Clock, formatTime } from '../../platform/clock.ts';
import { namedObject, type Static, Type } from '../../platform/json/json-schema.ts';
import type { Meters } from '../../platform/prometheus.ts';
import type { OwnedDatabases } from './owned-databases.ts';
import {
  type DatabaseFigures,
  type DatabaseSamplesStore,
  type EngineWork,
  figuresOf,
  type Sampler,
} from './sampler.ts';

/** Public schemas of a database's metrics. */
const Count = (description: string) => Type.Union([Type.Integer(), Type.Null()], { description });

const figures = {
  size_bytes: Count('Size in bytes'),
  connections: Type.Union([Type.Number(), Type.Null()], {
    description: 'Open sessions, or statements in progress',
  }),
  statements: Count('Cumulative; resets when the engine restarts'),
  rows_returned: Count('Cumulative; resets when the engine restarts'),
  rows_written: Count('Cumulative; resets when the engine restarts'),
};

const HistoryEntry = namedObject('DatabaseMetricsEntry', {
  timestamp: Type.String({ description: 'Start of the step' }),
  ...figures,
});

export const DatabaseMetrics = namedObject('DatabaseMetrics', {
  database_id: Type.String(),
  state: Type.String(),
  timestamp: Type.String({ description: 'When the metrics were read' }),
  ...figures,
  history: Type.Optional(
    Type.Array(HistoryEntry, {
      description:
        'Oldest first. Steps without use are omitted; counters have the value of the last sample in the step',
    }),
  ),
});
export type DatabaseMetrics = Static<typeof DatabaseMetrics>;

export interface MetricsDeps {
  readonly clock: Clock;
  readonly samples: DatabaseSamplesStore;
  readonly sampler: Pick<Sampler, 'measure'>;
  readonly owned: Pick<OwnedDatabases, 'findLive'>;
}

const UNKNOWN = { connections: null, statements: null, rows_returned: null, rows_written: null };

export class Metrics {
  readonly #deps: MetricsDeps;

  constructor(deps: MetricsDeps) {
    this.#deps = deps;
  }

  /**
   * Current metrics, null where the engine does not report them. With any of `from`, `to` and `step`,
   * includes the history. Throws `database_not_found` and `invalid_request`.
   */
  async read(principal: Principal, databaseId: string, text: RangeText): Promise<DatabaseMetrics> {
    const { clock, samples, sampler, owned } = this.#deps;
    const row = await owned.findLive(principal, databaseId);
    const range = readRange(text, clock.now());
    const measured = await sampler.measure(row);
    const figures = measured === null ? { ...UNKNOWN, size_bytes: row.size_bytes } : figuresOf(measured);
    return {
      database_id: row.database_id,
      state: row.state,
      timestamp: formatTime(clock.now()),
      ...shown(figures),
      ...(await historyOf(samples, { owner: row.id, range }, shown)),
    };
  }
}

function shown(figures: DatabaseFigures): DatabaseFigures {
  const { connections } = figures;
  return { ...figures, connections: connections === null ? null : Math.round(connections * 10) / 10 };
}

/** Declares the Prometheus series of databases. */
export function meterDatabases(meters: Meters, sampler: Pick<Sampler, 'counts' | 'work'>): void {
  meters.series('cloudlet_databases', {
    help: 'Databases by engine and state',
    type: 'gauge',
    isPublic: true,
    labels: ['engine', 'state'],
    read: () =>
      sampler.counts().map(({ engine, state, count }) => ({ labels: [engine, state], value: count })),
  });
  const byEngine = (read: (work: EngineWork) => number) => () =>
    [...sampler.work()].map(([engine, work]) => ({ labels: [engine], value: read(work) }));
  meters.series('cloudlet_database_statements_total', {
    help: 'Statements run by databases',
    type: 'counter',
    isPublic: true,
    labels: ['engine'],
    read: byEngine(({ statements }) => statements),
  });
  meters.series('cloudlet_database_connections', {
    help: 'Open sessions of databases, or statements in progress',
    type: 'gauge',
    isPublic: true,
    labels: ['engine'],
    read: byEngine(({ connections }) => connections),
  });
}
