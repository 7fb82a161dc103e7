/**
 * How many files a typical request runs through, and how many of them run one function only. A ceiling
 * may fall, never rise: a change that adds a file to a trip takes another out.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostLoad } from '../server/platform/host/host-facts.ts';
import { common, figuresOf, measureTrips, type Trip } from './trips.ts';

/**
 * As measured beside the other files of a whole run: on a quiet host there are three or four files less. They
 * rose once: the check for credits reads the usage itself, and rows have checksums.
 */
const CEILINGS: Readonly<Record<string, { readonly files: number; readonly single: number }>> = {
  'upload of 4 KiB': { files: 45, single: 5 },
  'upload of 1 MiB': { files: 59, single: 5 },
  'download of 1 MiB': { files: 34, single: 5 },
  'list of files': { files: 25, single: 5 },
  'S3 PUT of 4 KiB': { files: 46, single: 6 },
  'S3 GET of 4 KiB': { files: 29, single: 6 },
  'S3 LIST': { files: 28, single: 6 },
  'machine create': { files: 65, single: 10 },
  'machine start': { files: 82, single: 7 },
  'machine stop': { files: 60, single: 10 },
  'database create': { files: 69, single: 7 },
  'libSQL query': { files: 26, single: 6 },
  // The process of the engine has its own connections; a trip counts the server's files.
  'MongoDB document': { files: 10, single: 1 },
  // Work of threads at the end of a run may or may not count for it. A third of it makes dumps, and copies
  // disks.
  'recovery point': { files: 104, single: 14 },
  'restore of a file': { files: 73, single: 10 },
  charge: { files: 44, single: 6 },
};

/** Additional files in a trip on a busy host, which is so slow that periodic work falls into each. */
const MOST_BY_THE_CLOCK = 4;

test('trips stay below their ceilings', async () => {
  const trips = await measureTrips();
  assert.deepEqual(trips.map(({ name }) => name).sort(), Object.keys(CEILINGS).sort());
  const above = trips.flatMap(excess);
  // Periodic work may fall into any trip: a second measurement leaves what ran in both.
  const again = above.length === 0 ? [] : await measureTrips(above.map(({ trip }) => trip));
  const both = again.map((trip) => common(trip, trips.find(({ name }) => name === trip.name) ?? trip));
  assert.deepEqual(both.flatMap(excess), []);
});

function excess(trip: Trip) {
  const { files, single } = figuresOf(trip);
  const ceiling = CEILINGS[trip.name];
  const spare = Math.min(MOST_BY_THE_CLOCK, (hostLoad() - 1) * MOST_BY_THE_CLOCK);
  if (ceiling && files <= ceiling.files + spare && single <= ceiling.single) return [];
  const ran = [...trip.ran].map(([file, names]) => `${file}: ${[...names].join(' ')}`);
  return [{ trip: trip.name, files, single, ceiling, ran }];
}
