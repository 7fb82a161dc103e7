/** A page of 1,000 out of a million objects, at the start, in the middle and at the end. */
import { Client } from '../../test/harness/client.ts';
import { fillBucket } from '../filling.ts';
import { compare, interleave } from '../ratios.ts';
import { formatNumber, ratioRow } from '../table.ts';
import { createBucket, type Measurement, type Row, type RunOptions, withCloud } from '../workshop.ts';

const SMALL = 10_000;
const PAGE = 1000;

interface Pages {
  readonly beginning: string;
  readonly middle: string;
  readonly end: string;
}

/** The address of the next page in the Link header. */
function nextOf(link: string | null): string | undefined {
  const target = /<([^>]+)>;\s*rel="?next"?/.exec(link ?? '')?.[1];
  return target === undefined ? undefined : target.replace(/^https?:\/\/[^/]+/, '');
}

async function readPage(client: Client, path: string): Promise<{ text: string; next: string | undefined }> {
  const response = await client.fetch(path);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`a page was answered ${response.status}: ${text}`);
  return { text, next: nextOf(response.headers.get('link')) };
}

/** Reads the whole list, like a client, and keeps the addresses of three full pages. */
async function findPages(client: Client, bucket: string, versions: boolean): Promise<Pages> {
  const first = `/api/buckets/${bucket}/files?limit=${PAGE}${versions ? '&include_versions=true' : ''}`;
  const paths = [first];
  for (let next: string | undefined = first; next !== undefined; ) {
    next = (await readPage(client, next)).next;
    if (next !== undefined) paths.push(next);
  }
  // The last page may be short, the previous one is full.
  const at = (index: number) => paths[index] ?? first;
  return { beginning: first, middle: at(paths.length >> 1), end: at(paths.length - 2) };
}

async function timePage(client: Client, path: string): Promise<number> {
  const began = performance.now();
  const { text } = await readPage(client, path);
  const elapsed = performance.now() - began;
  const entries = JSON.parse(text) as unknown[];
  if (entries.length !== PAGE) throw new Error(`a page has ${entries.length} entries`);
  return elapsed;
}

async function comparePages(
  { quick }: RunOptions,
  client: Client,
  { versions, objects }: { versions: boolean; objects: number },
): Promise<Row[]> {
  const small = await findPages(client, 'small', versions);
  const large = await findPages(client, 'large', versions);
  const { yardstick, ...times } = await interleave(quick ? 15 : 40, {
    yardstick: () => timePage(client, small.middle),
    beginning: () => timePage(client, large.beginning),
    middle: () => timePage(client, large.middle),
    end: () => timePage(client, large.end),
  });
  return Object.entries(times).map(([position, values]) =>
    ratioRow({
      work: `page of ${formatNumber(PAGE)} out of ${formatNumber(objects)}${versions ? ' with versions' : ''}, ${position}`,
      against: `a page out of ${formatNumber(SMALL)}`,
      atMost: 3,
      comparison: compare(yardstick, values),
      unit: 'ms',
    }),
  );
}

function listings(options: RunOptions): Promise<Row[]> {
  const objects = options.quick ? 200_000 : 1_000_000;
  return withCloud(options, async ({ process, client, key }) => {
    await createBucket(client, { name: 'small', versioning: true });
    await createBucket(client, { name: 'large', versioning: true });
    await process.stop();
    fillBucket(process.dataDir, 'small', { objects: SMALL });
    fillBucket(process.dataDir, 'large', { objects });
    await process.start();
    const again = new Client(process.api, key);
    return [
      ...(await comparePages(options, again, { versions: false, objects })),
      ...(await comparePages(options, again, { versions: true, objects })),
    ];
  });
}

export const LISTING: readonly Measurement[] = [{ name: 'listing', run: listings }];
