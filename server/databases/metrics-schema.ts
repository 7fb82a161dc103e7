/** What a database's metrics look like from outside. */
import { namedObject, type Static, Type } from '../platform/json-schema.ts';

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
