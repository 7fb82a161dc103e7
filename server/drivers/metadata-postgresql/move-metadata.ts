/**
 * Moves the metadata of a stopped cloud between the data directory and PostgreSQL. The old location
 * keeps its rows, and refuses to start: two copies of one cloud would sweep each other's files.
 */
import * as fs from 'node:fs';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import type Database from 'better-sqlite3';
import type pg from 'pg';
import { MOVED_FILE, MOVED_SETTING, type Moved } from '../../metadata/identity.ts';
import type { SqlValue } from '../../metadata/metadata.ts';
import { migrate } from '../../metadata/migrate.ts';
import { migrations } from '../../metadata/migrations/migrations.ts';
import { systemClock } from '../../platform/clock.ts';
import { syncFolder, writeDurableFile } from '../../platform/files.ts';
import { randomBase62 } from '../../platform/ids.ts';
import { DATABASE_FILE, openReader, openWriter } from '../metadata-sqlite/connection.ts';
import { connect } from './connections.ts';
import { migrateSchema } from './postgresql-schema.ts';
import { inSnapshot, writeSqlite } from './postgresql-snapshots.ts';
import { StoreHold } from './store-hold.ts';
import { type CopiedTable, copyToPostgresql } from './table-copy.ts';

export interface MoveDeps {
  /** The data directory, which must not be open elsewhere. */
  readonly directory: string;
  readonly url: string;
  /** ms since 1970. */
  readonly now: number;
}

interface IdentityRow {
  readonly cloud_id: string;
  readonly starts: number;
}

const IDENTITY = 'SELECT cloud_id, starts FROM identity';
/** Rows compared at a time. */
const STEP = 500;

/**
 * Moves into an empty database, or that of an interrupted move. All or nothing; null: they were
 * moved before. Rejects with a one-line Error if the database has another cloud's rows, and with
 * drivers' errors.
 */
export async function moveToPostgresql({ directory, url, now }: MoveDeps): Promise<CopiedTable[] | null> {
  if (!fs.existsSync(join(directory, DATABASE_FILE))) {
    throw new Error(`${directory} has no ${DATABASE_FILE}: nothing was moved`);
  }
  upgrade(directory, now);
  return holding({ url, now }, () => moveHeld({ directory, url, now }));
}

async function moveHeld({ directory, url, now }: MoveDeps): Promise<CopiedTable[] | null> {
  const sqlite = openReader(directory);
  const client = await connect({ url, onEnd: () => {} });
  try {
    await migrateSchema(client, now);
    await client.query('BEGIN');
    const isMoved = fs.existsSync(join(directory, MOVED_FILE));
    if (!(await isFree(client, sqlite, isMoved))) return null;
    const copied = await copyToPostgresql(sqlite, client);
    for (const table of copied) await assertSame(sqlite, client, table);
    // Before the commit: after a kill in between neither can start, and the next attempt continues.
    const moved: Moved = { to: withoutSecret(url), at: now };
    writeDurableFile(join(directory, MOVED_FILE), `${JSON.stringify(moved)}\n`, 0o600);
    await client.query('COMMIT');
    return copied;
  } finally {
    sqlite.close();
    await client.end();
  }
}

/** Moves into the data directory, replacing a database that was moved away. null: they were moved before. */
export function moveToSqlite(deps: MoveDeps): Promise<CopiedTable[] | null> {
  return holding(deps, () => moveBack(deps));
}

async function moveBack({ directory, url, now }: MoveDeps): Promise<CopiedTable[] | null> {
  const fresh = mkdtempSync(join(directory, 'metadata-moving-'));
  try {
    const copied = await inSnapshot(url, async (client) => {
      const [theirs] = (await client.query<IdentityRow>(IDENTITY)).rows;
      const moved = await client.query('SELECT 1 FROM settings WHERE name = $1', [MOVED_SETTING]);
      if (!isReplaceable(directory, theirs, (moved.rowCount ?? 0) > 0)) return null;
      const tables = await writeSqlite(client, fresh, now);
      const sqlite = openReader(fresh);
      try {
        for (const table of tables) await assertSame(sqlite, client, table);
      } finally {
        sqlite.close();
      }
      return tables;
    });
    if (copied === null) return null;
    for (const end of ['-wal', '-shm']) fs.rmSync(join(directory, DATABASE_FILE + end), { force: true });
    fs.renameSync(join(fresh, DATABASE_FILE), join(directory, DATABASE_FILE));
    syncFolder(directory);
    await noteMoved(url, { to: directory, at: now });
    fs.rmSync(join(directory, MOVED_FILE), { force: true });
    syncFolder(directory);
    return copied;
  } finally {
    fs.rmSync(fresh, { recursive: true, force: true });
  }
}

/** Runs `work` while no Cloudlet uses the database. Rejects with a StartupError that names the user. */
async function holding<T>({ url, now }: Omit<MoveDeps, 'directory'>, work: () => Promise<T>): Promise<T> {
  const hold = await StoreHold.take({
    url,
    writer: randomBase62(22),
    clock: { now: () => now, monotonic: systemClock.monotonic },
    onTakenOver: () => {},
    onSilence: () => {},
    onWrite: () => {},
  });
  try {
    return await work();
  } finally {
    await hold.release();
  }
}

/** Migrates to the newest schema, which is PostgreSQL's. */
function upgrade(directory: string, nowMs: number): void {
  const database = openWriter(directory);
  try {
    migrate(database, migrations, nowMs);
  } finally {
    database.close();
  }
}

/**
 * False if the metadata were moved before, and used there. Throws if the database has another cloud's, or
 * newer ones that were not moved from here.
 */
async function isFree(client: pg.Client, sqlite: Database.Database, isMoved: boolean): Promise<boolean> {
  const { rows } = await client.query<IdentityRow>(IDENTITY);
  const [theirs] = rows;
  if (theirs === undefined) return true;
  const ours = sqlite.prepare(IDENTITY).get() as IdentityRow | undefined;
  if (isOlder(theirs, ours)) return true;
  if (isMoved && ours !== undefined && isOlder(ours, theirs)) return false;
  throw new Error('the database already has the metadata of a cloud: use an empty one');
}

/**
 * False if the metadata were moved before, and used here. Throws if the data directory has another cloud's,
 * or newer ones that were not moved from there.
 */
function isReplaceable(directory: string, theirs: IdentityRow | undefined, isMoved: boolean): boolean {
  if (theirs === undefined) throw new Error('the database has no metadata of a cloud: nothing was moved');
  if (!fs.existsSync(join(directory, DATABASE_FILE))) return true;
  const sqlite = openReader(directory);
  try {
    const ours = sqlite.prepare(IDENTITY).get() as IdentityRow | undefined;
    if (ours !== undefined && isOlder(ours, theirs)) return true;
    if (isMoved && isOlder(theirs, ours)) return false;
  } finally {
    sqlite.close();
  }
  throw new Error(
    `${join(directory, DATABASE_FILE)} belongs to another cloud, or is newer than the database: nothing was moved`,
  );
}

/** Whether `one` belongs to the same cloud as `other` and is not newer. */
function isOlder(one: IdentityRow, other: IdentityRow | undefined): boolean {
  return one.cloud_id === other?.cloud_id && one.starts <= other.starts;
}

async function noteMoved(url: string, moved: Moved): Promise<void> {
  const client = await connect({ url, onEnd: () => {} });
  try {
    await client.query(
      `INSERT INTO settings (name, value) VALUES ($1, $2)
       ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
      [MOVED_SETTING, JSON.stringify(moved)],
    );
  } finally {
    await client.end();
  }
}

/** Throws unless every row exists with equal values. `client` has an open transaction. */
async function assertSame(
  sqlite: Database.Database,
  client: pg.Client,
  { name, columns, rows: count }: CopiedTable,
): Promise<void> {
  const info = sqlite.pragma(`table_info(${name})`) as { name: string; pk: number }[];
  const key = info.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk);
  const order = key.map((column) => column.name).join(', ');
  const query = `SELECT ${columns.join(', ')} FROM ${name} ORDER BY ${order}`;
  const ours = sqlite.prepare(query).raw().safeIntegers().iterate() as IterableIterator<SqlValue[]>;
  await client.query(`DECLARE compared NO SCROLL CURSOR FOR ${query}`);
  let seen = 0;
  for (;;) {
    const { rows } = await client.query<SqlValue[]>({
      text: `FETCH ${STEP} FROM compared`,
      rowMode: 'array',
    });
    if (rows.length === 0) break;
    for (const row of rows) {
      const { value: own } = ours.next() as { value?: SqlValue[] };
      if (own === undefined || !row.every((value, i) => isSame(value, own[i]))) {
        throw new Error(`row ${seen + 1} of ${name} differs between both sides: nothing was moved`);
      }
      seen++;
    }
  }
  await client.query('CLOSE compared');
  if (seen !== count || ours.next().done !== true) {
    throw new Error(`${name} has ${seen} rows on one side, not ${count}: nothing was moved`);
  }
}

function isSame(a: SqlValue | undefined, b: SqlValue | undefined): boolean {
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b) === 0;
  const isNumber = (value: unknown) => typeof value === 'number' || typeof value === 'bigint';
  // biome-ignore lint/suspicious/noDoubleEquals: one side may have a bigint for the number of the other
  return a === b || (isNumber(a) && isNumber(b) && a == b);
}

function withoutSecret(url: string): string {
  const { host, pathname } = new URL(url);
  return `postgresql://${host}${pathname}`;
}
