/** What a database takes and does: now, and over the last hour and month. */

import type { Principal } from '../calls/principal.ts';
import { type RangeText, readHistory, readRange } from '../metadata/sample-history.ts';
import { type Clock, formatTime } from '../platform/clock.ts';
import { namedObject, type Static, Type } from '../platform/json-schema.ts';
import type { OwnedDatabases } from './owned-databases.ts';
import { type DatabaseFigures, type DatabaseSamplesStore, figuresOf, type Sampler } from './sampler.ts';

/** What a database's metrics look like from outside. */
const Count = (description: string) => Type.Union([Type.Integer(), Type.Null()], { description });

const figures = {
  size_bytes: Count('What it takes'),
  connections: Type.Union([Type.Number(), Type.Null()], { description: 'Sessions, or statements under way' }),
  statements: Count('Since the engine began to count; 0 again when it starts anew'),
  rows_returned: Count('Likewise'),
  rows_written: Count('Likewise'),
};

const HistoryEntry = namedObject('DatabaseMetricsEntry', {
  timestamp: Type.String({ description: 'Beginning of the step' }),
  ...figures,
});

export const DatabaseMetrics = namedObject('DatabaseMetrics', {
  database_id: Type.String(),
  state: Type.String(),
  timestamp: Type.String({ description: 'When the figures were read' }),
  ...figures,
  history: Type.Optional(
    Type.Array(HistoryEntry, {
      description:
        'Oldest first. Steps in which nobody used it are left out; counters are those of the last reading',
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
   * The figures of now, null where the engine does not tell. With any of `from`, `to` and `step` also the
   * history. Throws `database_not_found` and `invalid_request`.
   */
  async read(principal: Principal, databaseId: string, text: RangeText): Promise<DatabaseMetrics> {
    const { clock, samples, sampler, owned } = this.#deps;
    const row = await owned.findLive(principal, databaseId);
    const wantsHistory = text.from !== undefined || text.to !== undefined || text.step !== undefined;
    const range = wantsHistory ? readRange(text, clock.now()) : null;
    const measured = await sampler.measure(row);
    const figures = measured === null ? { ...UNKNOWN, size_bytes: row.size_bytes } : figuresOf(measured);
    const response = {
      database_id: row.database_id,
      state: row.state,
      timestamp: formatTime(clock.now()),
      ...shown(figures),
    };
    if (range === null) return response;
    const steps = await readHistory(samples, row.id, range);
    return {
      ...response,
      history: steps.map(([at, each]) => ({ timestamp: formatTime(at), ...shown(each) })),
    };
  }
}

function shown(figures: DatabaseFigures): DatabaseFigures {
  const { connections } = figures;
  return { ...figures, connections: connections === null ? null : Math.round(connections * 10) / 10 };
}
