/** The series of object storage, for Prometheus. */
import type { Meters } from '../platform/prometheus.ts';
import type { ScrubStatus } from './blobs/scrubber.ts';
import type { StorageTotals } from './buckets/bucket-sql.ts';

interface StorageFigures {
  readonly totals: () => Promise<StorageTotals>;
  readonly scrub: () => Promise<ScrubStatus>;
}

const GAUGE = { type: 'gauge', labels: [], isPublic: true } as const;

export function meterStorage(meters: Meters, { totals, scrub }: StorageFigures): void {
  const total = (name: string, help: string, read: (totals: StorageTotals) => number) =>
    meters.askedSeries(`cloudlet_storage_${name}`, {
      ...GAUGE,
      help,
      ask: async () => [{ labels: [], value: read(await totals()) }],
    });
  total('buckets', 'Buckets of all accounts', ({ buckets }) => buckets);
  total('objects', 'Objects of all accounts, without earlier versions', ({ objects }) => objects);
  total('bytes', 'Size of all versions of all objects', ({ bytes }) => bytes);
  total(
    'metadata_bytes',
    'Size of names, metadata and tags of objects',
    ({ metadataBytes }) => metadataBytes,
  );
  meters.askedSeries('cloudlet_scrub_damaged', {
    ...GAUGE,
    help: 'Known damage, by kind',
    labels: ['kind'],
    ask: async () => {
      const { damaged_blobs: blobs, damaged_rows: rows } = await scrub();
      return [
        { labels: ['content'], value: blobs },
        { labels: ['metadata'], value: rows },
      ];
    },
  });
  meters.askedSeries('cloudlet_scrub_finished_timestamp_seconds', {
    ...GAUGE,
    help: 'When the last scrub ended; missing before the first',
    ask: async () => {
      const { finished_at: finishedAt } = await scrub();
      return finishedAt === null ? [] : [{ labels: [], value: Date.parse(`${finishedAt}Z`) / 1000 }];
    },
  });
}
