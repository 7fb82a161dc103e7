/** Recovery points with a machine's disk, and with dumps of databases: later ones compared with the first. */
import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, readdirSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '../../test/harness/client.ts';
import { ADMIN_KEY } from '../../test/harness/cloud-process.ts';
import { compare } from '../ratios.ts';
import { skippedRow } from '../table.ts';
import { bodyOf, type Cloud, type Measurement, type Row, type RunOptions, withCloud } from '../workshop.ts';

const MIB = 2 ** 20;
/** A disk changed just now is read again by the next point, because file systems count time in ticks. */
const SETTLED_MS = 3000;
/** The first megabytes of a disk contain its partition table and file system. */
const FROM = 256 * MIB;
const MOST_SHARE = 0.05;

interface Point {
  readonly state: string;
  readonly stored_bytes: number;
  readonly ms: number;
}

async function point({ process: { api } }: Cloud): Promise<Point> {
  const admin = new Client(api, ADMIN_KEY);
  const began = performance.now();
  const made = await bodyOf(admin, '/api/disaster-recovery/points?wait=600', { method: 'POST' });
  if (made.state !== 'complete') throw new Error(`a recovery point is ${JSON.stringify(made)}`);
  return { ...made, ms: performance.now() - began };
}

interface Kind {
  /** `100 MiB in a machine's disk`. */
  readonly what: string;
  /** Creates all of it again. */
  readonly fill: () => Promise<void>;
  /** Changes one percent. */
  readonly change: () => Promise<void>;
  /** Maximum share of a point after no change, compared with the first; undefined: it is read again. */
  readonly atMostUnchanged?: number;
}

async function rowsOf(
  cloud: Cloud,
  rounds: number,
  { what, fill, change, atMostUnchanged }: Kind,
): Promise<Row[]> {
  const [firsts, nexts, unchanged, shares]: [number[], number[], number[], number[]] = [[], [], [], []];
  for (let count = 0; count < rounds; count++) {
    await fill();
    const first = await point(cloud);
    await change();
    await sleep(SETTLED_MS);
    const next = await point(cloud);
    firsts.push(first.ms);
    nexts.push(next.ms);
    shares.push(next.stored_bytes / first.stored_bytes);
    unchanged.push((await point(cloud)).ms);
  }
  const share = Math.max(...shares);
  const row = (work: string, atMost: number, [ours, isSmall]: [number[], boolean]): Row => {
    const { ratio, ours: ms, yardstick } = compare(firsts, ours);
    return {
      work: `${work} ${what}: time of the first`,
      target: `≤ ${atMost.toFixed(2)} ×`,
      reached: `**${ratio.toFixed(2)} ×**`,
      isMet: ratio <= atMost && isSmall,
      detail: `${ms.toFixed(0)} ms against ${yardstick.toFixed(0)} ms; ${(share * 100).toFixed(1)} % of the bytes after the change, at most 5 wanted`,
    };
  };
  const changed = row('the next point after 1 % was changed of', 0.6, [nexts, share <= MOST_SHARE]);
  if (atMostUnchanged === undefined) return [changed];
  return [changed, row('the next point after nothing was changed of', atMostUnchanged, [unchanged, true])];
}

function write(path: string, from: number, bytes: number): void {
  const file = openSync(path, 'r+');
  for (let at = 0; at < bytes; at += MIB)
    writeSync(file, randomBytes(Math.min(MIB, bytes - at)), 0, undefined, from + at);
  fsyncSync(file);
  closeSync(file);
}

/** The disk of a stopped machine, filled as by its guest. */
async function disks(options: RunOptions): Promise<Row[]> {
  const bytes = (options.quick ? 256 : 2048) * MIB;
  return withCloud(options, async (cloud) => {
    const { status, body } = await cloud.client.call('/api/vms', {
      json: { name: 'bench', instance_type: 't2.micro' },
    });
    if (status >= 300) return [skippedRow('recovery point of a disk', '≤ 0.60 ×', body.detail)];
    const guest = join(cloud.process.dataDir, 'vms', body.vm_id, 'guest');
    const disk = readdirSync(guest).find((name) => name === 'disk.raw');
    if (disk === undefined) return [skippedRow('recovery point of a disk', '≤ 0.60 ×', 'no raw disk')];
    const path = join(guest, disk);
    return rowsOf(cloud, options.rounds ?? 3, {
      what: `${bytes / MIB} MiB in a machine's disk`,
      fill: async () => write(path, FROM, bytes),
      change: async () => write(path, FROM + bytes / 2, bytes / 100),
      atMostUnchanged: 0.3,
    });
  });
}

const ROW_BYTES = 1000;
const FILLING = {
  sqlite: (rows: number) => `WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT ${rows})
    INSERT INTO t SELECT i, randomblob(${ROW_BYTES}) FROM n`,
  postgresql: (
    rows: number,
  ) => `INSERT INTO t SELECT i, (SELECT decode(string_agg(md5(random()::text || i || j), ''), 'hex')
    FROM generate_series(1, ${Math.ceil(ROW_BYTES / 16)}) j) FROM generate_series(1, ${rows}) i`,
};
const BYTES = { sqlite: 'BLOB', postgresql: 'BYTEA' };
const CHANGED = { sqlite: `randomblob(${ROW_BYTES})`, postgresql: 'sha512(x) || x' };

/** A database that is idle meanwhile. */
async function dumps(options: RunOptions, engine: keyof typeof FILLING): Promise<Row[]> {
  const rows = options.quick ? 160_000 : 400_000;
  return withCloud(options, async (cloud) => {
    const { status, body } = await cloud.client.call('/api/databases', { json: { name: 'bench', engine } });
    if (status >= 300) return [skippedRow(`recovery point of ${engine}`, '≤ 0.60 ×', body.detail)];
    const run = (statement: string) =>
      bodyOf(cloud.client, `/api/databases/${body.database_id}/query`, {
        json: { statement, read_only: false },
      });
    const kind: Kind = {
      what: `${Math.round((rows * ROW_BYTES) / MIB)} MiB in a database of ${engine}`,
      fill: async () => {
        await run('DROP TABLE IF EXISTS t');
        await run(`CREATE TABLE t (i INTEGER PRIMARY KEY, x ${BYTES[engine]})`);
        for (let at = 0; at < rows; at += 20_000)
          await run(FILLING[engine](20_000).replace('SELECT i,', `SELECT i + ${at},`));
      },
      change: () => run(`UPDATE t SET x = ${CHANGED[engine]} WHERE i <= ${rows / 100}`),
    };
    return rowsOf(cloud, options.rounds ?? 3, kind);
  });
}

export const RECOVERY_KINDS: readonly Measurement[] = [
  { name: 'recovery-disks', run: disks },
  {
    name: 'recovery-dumps',
    run: async (options) => [...(await dumps(options, 'sqlite')), ...(await dumps(options, 'postgresql'))],
  },
];
