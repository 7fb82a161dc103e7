/** What is kept of databases' readings. */
import type { Figures, SamplesStore, SampleTable } from '../metadata/samples-store.ts';

/** Counters are those of the engine, which may begin anew. */
export const DATABASE_SAMPLES = {
  name: 'database_samples',
  owner: 'database',
  owners: 'databases',
  figures: {
    size_bytes: 'newest',
    connections: 'mean',
    statements: 'newest',
    rows_returned: 'newest',
    rows_written: 'newest',
  },
} as const satisfies SampleTable<string>;

type DatabaseFigure = keyof typeof DATABASE_SAMPLES.figures;
export type DatabaseFigures = Figures<DatabaseFigure>;
export type DatabaseSamplesStore = SamplesStore<DatabaseFigure>;
