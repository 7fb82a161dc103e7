/**
 * Lets one process at a time write to a database. The holder notes itself in a row and renews it every
 * second. Who takes over marks the holder's row in `store_batches`, which each of its batches changes: a
 * process that was cut off and comes back can store nothing.
 */
import { hostname } from 'node:os';
import type pg from 'pg';
import { formatTime } from '../../platform/clock.ts';
import { StartupError } from '../../platform/data-directory.ts';
import { codeOf, connect, cut, sessionName } from './connections.ts';
import { makeStoreTables } from './postgresql-schema.ts';

export interface HoldDeps {
  readonly url: string;
  /** Identifies this process among all that ever held the database. */
  readonly writer: string;
  readonly clock: { now(): number; monotonic(): number };
  /** Called once when another process has taken over; `by` names it. */
  readonly onTakenOver: (by: string) => void;
  /** The server has not answered for SILENT_MS: connections to it are of no use. */
  readonly onSilence: () => void;
}

interface Row {
  readonly writer: string | null;
  readonly host: string;
  readonly pid: number;
  readonly since: number;
  readonly beat: string;
  readonly age_ms: number;
  readonly is_connected: number;
}

const BEAT_MS = 1000;
/** A holder without a connection for so long has ended. */
const GONE_MS = 3000;
/** Its host may have vanished without a word, so that the server still counts its connections. */
const SILENT_MS = 10_000;
const LOOK_MS = 200;
const RELEASE_MS = 5000;
/** A batch that the server still stores holds up a take-over. */
const LOCK_MS = 60_000;

const LOOK = `SELECT writer, host, pid, since, beat_at::text AS beat,
    floor(extract(epoch FROM clock_timestamp() - beat_at) * 1000) AS age_ms,
    EXISTS (SELECT FROM pg_stat_activity a WHERE a.datname = current_database()
            AND a.application_name = 'cloudlet ' || h.writer) AS is_connected
  FROM store_holder h WHERE id = 1`;

export class StoreHold {
  readonly #deps: HoldDeps;
  #client: pg.Client | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isEnded = false;

  private constructor(deps: HoldDeps) {
    this.#deps = deps;
  }

  /**
   * Takes the database once no other process holds it, which takes seconds after one was killed. Rejects
   * with a StartupError that names the process that holds it, and with pg's errors.
   */
  static async take(deps: HoldDeps): Promise<StoreHold> {
    const hold = new StoreHold(deps);
    const client = await hold.#connected();
    try {
      await makeStoreTables(client);
      await client.query(`SET lock_timeout = ${LOCK_MS}`);
      await awaitFree(client, deps);
      hold.#schedule();
      return hold;
    } catch (error) {
      await client.end();
      throw error;
    }
  }

  /** Leaves the database to the next process. */
  async release(): Promise<void> {
    this.#isEnded = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    const { writer } = this.#deps;
    const client = this.#client;
    if (client === null) return;
    const hung = setTimeout(() => cut(client), RELEASE_MS);
    try {
      await client.query('UPDATE store_holder SET writer = NULL WHERE id = 1 AND writer = $1', [writer]);
      await client.query('DELETE FROM store_batches WHERE writer = $1', [writer]);
      await client.end();
    } catch {
      // The next process finds no connection of this one, and takes over.
    } finally {
      clearTimeout(hung);
    }
  }

  #schedule(): void {
    this.#timer = setTimeout(() => {
      void this.#beat().finally(() => {
        if (!this.#isEnded) this.#schedule();
      });
    }, BEAT_MS);
  }

  async #beat(): Promise<void> {
    const { writer, onSilence } = this.#deps;
    const silence = setTimeout(() => {
      if (this.#client !== null) cut(this.#client);
      onSilence();
    }, SILENT_MS);
    try {
      const client = await this.#connected();
      // A beat that a crash of the server forgets does no harm.
      const [, { rowCount }] = await Promise.all([
        client.query('SET synchronous_commit = off'),
        client.query('UPDATE store_holder SET beat_at = clock_timestamp() WHERE id = 1 AND writer = $1', [
          writer,
        ]),
      ]);
      if (rowCount === 0 && !this.#isEnded) await this.#end(client);
    } catch {
      // The store itself raises the alarm.
    } finally {
      clearTimeout(silence);
    }
  }

  async #connected(): Promise<pg.Client> {
    if (this.#client !== null) return this.#client;
    const { url, writer } = this.#deps;
    const onEnd = () => {
      this.#client = null;
    };
    this.#client = await connect({ url, writer, onEnd });
    return this.#client;
  }

  async #end(client: pg.Client): Promise<void> {
    const { rows } = await client.query<Row>(LOOK);
    this.#isEnded = true;
    await client.end();
    this.#deps.onTakenOver(nameOf(rows[0]));
  }
}

/** Resolves once this process holds the database. */
async function awaitFree(client: pg.Client, deps: HoldDeps): Promise<void> {
  const { clock } = deps;
  const began = clock.monotonic();
  let firstBeat: string | null = null;
  for (;;) {
    await client.query('BEGIN');
    const { rows } = await client.query<Row>(`${LOOK} FOR UPDATE`);
    const row = rows[0] as Row;
    const watchedMs = clock.monotonic() - began;
    // The server's clock may have been set back.
    const silentMs = Math.max(row.age_ms, watchedMs);
    // While the server was away nobody could renew the row: its age alone says nothing.
    const isSilent = watchedMs >= GONE_MS && (row.is_connected === 0 || silentMs >= SILENT_MS);
    if (row.writer === null || isSilent) {
      await takeOver(client, { deps, from: row.writer });
      await client.query('COMMIT');
      return;
    }
    await client.query('ROLLBACK');
    firstBeat ??= row.beat;
    if (row.beat !== firstBeat) throw heldBy(row);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

async function takeOver(
  client: pg.Client,
  { deps: { writer, clock }, from }: { deps: HoldDeps; from: string | null },
): Promise<void> {
  if (from !== null) {
    await client.query('SAVEPOINT ends');
    // A role that may not end them waits for what they store.
    await client
      .query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1', [
        sessionName(from),
      ])
      .catch(async (error: unknown) => {
        if (codeOf(error) === '') throw error;
        await client.query('ROLLBACK TO ends');
      });
    await client.query('DELETE FROM store_batches WHERE may_write = 0');
    await client.query('UPDATE store_batches SET may_write = 0 WHERE writer = $1', [from]);
  }
  await client.query('INSERT INTO store_batches (writer, last) VALUES ($1, 0)', [writer]);
  await client.query(
    `UPDATE store_holder SET writer = $1, host = $2, pid = $3, since = $4, beat_at = clock_timestamp()
     WHERE id = 1`,
    [writer, hostname(), process.pid, clock.now()],
  );
}

function heldBy(row: Row): StartupError {
  return new StartupError(
    `The database in CLOUDLET_METADATA_URL is in use by the Cloudlet ${nameOf(row)}: ` +
      'stop that Cloudlet, or use a separate database for this one',
  );
}

function nameOf(row: Row | undefined): string {
  if (row === undefined || row.writer === null) return 'on another host';
  return `on ${row.host}, process ${row.pid}, since ${formatTime(row.since)}`;
}
