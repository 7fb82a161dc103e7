/**
 * Metadata in the operator's PostgreSQL. Commits wait here while a batch is being stored, and then
 * share one transaction: with a transaction per request, a busy account could store no more than
 * one commit per fsync.
 */
import type pg from 'pg';
import { CommitQueue, type WaitingCommit } from '../../metadata/commit-queue.ts';
import { MOVED_SETTING, type Moved } from '../../metadata/identity.ts';
import type { Metadata, Reads, SqlValue, Statement, StatementResult } from '../../metadata/metadata.ts';
import { type OpenSnapshot, ReadSnapshots } from '../../metadata/read-snapshots.ts';
import { StoreFigures } from '../../metadata/store-figures.ts';
import type { Alarms } from '../../platform/alarms.ts';
import type { Clock } from '../../platform/clock.ts';
import { StartupError } from '../../platform/data-directory.ts';
import { AppError } from '../../platform/errors.ts';
import { randomBase62 } from '../../platform/ids.ts';
import { ALONE, type Membership } from '../../platform/membership.ts';
import { BatchRefused, BatchStore, type CommitOutcome } from './batch-store.ts';
import { answer, closed, failureOf, outcomeUnknown, takenOver, unreachable } from './commit-answers.ts';
import { codeOf, connect, cut, isReadOnly, isStandby, readsOf } from './connections.ts';
import { type JoiningNode, NodeMembers, type NodeMembersDeps } from './node-members.ts';
import { migrateSchema } from './postgresql-schema.ts';
import { Readers } from './readers.ts';
import { numberedTables, RowIds } from './row-ids.ts';
import { assertUsable } from './server-facts.ts';
import { StoreHold } from './store-hold.ts';

export interface PostgresqlMetadataDeps {
  /** `postgresql://user:password@host/database`; hosts may be several, comma-separated. */
  readonly url: string;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly alarms: Alarms;
  readonly figures?: StoreFigures;
  /** Called when this process may no longer store anything. */
  readonly onTakenOver: (detail: string) => void;
  /** Joins the nodes of the database; undefined: a single writer. */
  readonly node?: JoiningNode | undefined;
}

const ALARM = 'metadata_unreachable';
const TAKEN_OVER = 'metadata_taken_over';
const NO_WRITES = 'metadata_read_only';
const RECONNECT_MS = 250;
const MAX_RECONNECT_MS = 5000;
/** How long a commit with a lost connection waits for its outcome. */
const OUTCOME_MS = 30_000;
/** A transaction that waits for its next statement belongs to a lost connection. */
const IDLE_MS = 30_000;
const FIX = 'Start PostgreSQL, or correct CLOUDLET_METADATA_URL; Cloudlet reconnects automatically';

interface Writer {
  readonly client: pg.Client;
  readonly batches: BatchStore;
}

/** This process holds the database: alone, or beside other nodes. */
interface Hold {
  readonly membership: Membership;
  release(): Promise<void>;
}

interface Opened {
  readonly name: string;
  readonly hold: Hold;
  /** Tables whose row ids come from a sequence. */
  readonly tables: ReadonlySet<string>;
}

export class PostgresqlMetadata implements Metadata {
  readonly #deps: PostgresqlMetadataDeps;
  readonly #queue: CommitQueue;
  readonly #figures: StoreFigures;
  readonly #name: string;
  readonly #tables: ReadonlySet<string>;
  readonly #hold: Hold;
  #isTakenOver = false;
  /** The outcome of a batch could not be read; until it is known or given up, nothing else is queued. */
  #isAway = false;
  #writer: Promise<Writer> | null = null;
  readonly #readers = new Readers((onEnd) =>
    this.#connect(() => {
      onEnd();
      this.#figures.lostConnections++;
    }),
  );
  readonly #snapshots = new ReadSnapshots(() => this.#openSnapshot());
  #batch = 0;
  #closing: Promise<void> | null = null;

  private constructor(deps: PostgresqlMetadataDeps, { name, tables, hold }: Opened) {
    this.#deps = deps;
    this.#name = name;
    this.#tables = tables;
    this.#hold = hold;
    const { clock, figures = new StoreFigures() } = deps;
    this.#figures = figures;
    const send = (batch: readonly WaitingCommit[]) =>
      void this.#store(batch).finally(() => this.#queue.done());
    this.#queue = new CommitQueue({ clock, figures, send });
  }

  /**
   * Waits a few seconds for another Cloudlet that was killed. Rejects with a one-line Error if the
   * server cannot be used, or another Cloudlet uses the database.
   */
  static async open(deps: PostgresqlMetadataDeps): Promise<PostgresqlMetadata> {
    const { url, clock } = deps;
    const client = await connect({ url, onEnd: () => {} }).catch((error: Error) => {
      const { host, pathname } = new URL(url);
      throw new StartupError(
        `PostgreSQL at ${host}${pathname} cannot be used for the metadata (${error.message}): ` +
          'start it, or correct CLOUDLET_METADATA_URL',
        error,
      );
    });
    try {
      await assertUsable(client);
      const name = randomBase62(22);
      let opened: PostgresqlMetadata | null = null;
      let ended = null as string | null;
      const migrate = () => migrateSchema(client, clock.now());
      const hold = await holdOf(deps, name, {
        migrate,
        onFenced: (detail) => {
          ended = detail;
          if (opened !== null) opened.#endWrites(detail);
        },
        onSilence: () => {
          if (opened !== null) opened.#cutAll();
        },
        onWrite: (isTaken) => {
          if (isTaken) deps.alarms.clear(NO_WRITES);
          else if (opened !== null) void opened.#refused();
        },
      });
      try {
        if (deps.node === undefined) await migrate();
        await assertNotMovedAway(client);
        opened = new PostgresqlMetadata(deps, { name, hold, tables: await numberedTables(client) });
        if (ended !== null) opened.#endWrites(ended);
        return opened;
      } catch (error) {
        await hold.release();
        throw error;
      }
    } finally {
      await client.end();
    }
  }

  get membership(): Membership {
    return this.#hold.membership;
  }

  async get<T>(sql: string, ...params: SqlValue[]): Promise<T | undefined> {
    if (this.#closing !== null) throw closed();
    // Texts in the metadata never contain NUL.
    if (params.some(hasNul)) return undefined;
    const row = await this.#readers.get<T>(sql, params);
    this.#deps.alarms.clear(ALARM);
    return row;
  }

  async all<T>(sql: string, ...params: SqlValue[]): Promise<T[]> {
    if (this.#closing !== null) throw closed();
    if (params.some(hasNul)) return [];
    const rows = await this.#readers.all(sql, params);
    // The alarm may concern another connection, and is obsolete.
    this.#deps.alarms.clear(ALARM);
    return rows as T[];
  }

  async snapshot<T>(work: (reads: Reads) => Promise<T>): Promise<T> {
    if (this.#closing !== null) throw closed();
    return this.#snapshots.run(work);
  }

  /** The connection is closed with the snapshot: snapshots are rare. */
  async #openSnapshot(): Promise<OpenSnapshot> {
    const client = await this.#connect(() => {});
    const { all } = readsOf(client);
    const checked = async <T>(sql: string, ...params: SqlValue[]): Promise<T[]> => {
      if (params.some(hasNul)) return [];
      return all<T>(sql, ...params).catch((error: unknown) => {
        throw codeOf(error) === '' ? unreachable(error) : error;
      });
    };
    const get = async <T>(sql: string, ...params: SqlValue[]) => (await checked<T>(sql, ...params))[0];
    const end = () => client.end();
    try {
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
      return { reads: { all: checked, get }, end };
    } catch (error) {
      await end();
      throw unreachable(error);
    }
  }

  commit(statements: readonly Statement[]): Promise<StatementResult[]> {
    if (this.#closing !== null) return Promise.reject(closed());
    if (this.#isTakenOver) return Promise.reject(takenOver());
    if (this.#isAway)
      return Promise.reject(unreachable(new Error('the outcome of a commit is being queried')));
    return this.#add(statements);
  }

  async #add(statements: readonly Statement[]): Promise<StatementResult[]> {
    for (const { params } of statements) assertStorable(params);
    return this.#queue.add(statements);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#queue.idle();
    await this.#hold.release();
    for (const client of this.#clients) await client.then((open) => open.end()).catch(() => {});
  }

  /** Connections that are open or being opened. */
  get #clients(): readonly Promise<pg.Client>[] {
    const writer = this.#writer?.then(({ client }) => client);
    return writer === undefined ? this.#readers.clients : [...this.#readers.clients, writer];
  }

  /** A connection that is still being opened does not delay the others. */
  #cutAll(): void {
    for (const client of this.#clients) void client.then(cut, () => {});
  }

  #endWrites(detail: string): void {
    if (this.#isTakenOver) return;
    this.#isTakenOver = true;
    this.#deps.alarms.raise(
      TAKEN_OVER,
      detail,
      'Stop this Cloudlet; or stop the other one and restart this one',
    );
    this.#deps.onTakenOver(detail);
  }

  /**
   * The server accepts no writes. If only its settings forbid them, reads continue; a standby in place of the
   * primary might answer with outdated rows, so its connections are closed.
   */
  async #refused(): Promise<void> {
    this.#deps.alarms.raise(
      NO_WRITES,
      'PostgreSQL, which holds the metadata, accepts no writes: it is a standby, or its settings make it read-only',
      'Point CLOUDLET_METADATA_URL at the primary, or turn off default_transaction_read_only; Cloudlet reconnects automatically',
    );
    const rows = await this.#readers.all('SELECT pg_is_in_recovery() AS is', []).catch(() => []);
    if ((rows[0] as { is: number } | undefined)?.is === 1) this.#cutAll();
  }

  async #connect(onEnd: () => void, idleMs?: number): Promise<pg.Client> {
    const { url, alarms } = this.#deps;
    try {
      const client = await connect({ url, writer: this.#name, onEnd, ...(idleMs && { idleMs }) });
      if (await isStandby(client)) {
        cut(client);
        throw new Error('it is a standby, which is read-only');
      }
      alarms.clear(ALARM);
      return client;
    } catch (error) {
      const detail = `PostgreSQL, which holds the metadata, cannot be reached: ${(error as Error).message}`;
      alarms.raise(ALARM, detail, FIX);
      throw unreachable(error);
    }
  }

  #connectedWriter(): Promise<Writer> {
    this.#writer ??= this.#connect(() => {
      this.#writer = null;
      this.#figures.lostConnections++;
    }, IDLE_MS).then((client) => {
      const onRetry = () => {
        this.#figures.retries++;
      };
      const ids = new RowIds({ tables: this.#tables, clock: this.#deps.clock });
      return { client, batches: new BatchStore({ client, ids, writer: this.#name, onRetry }) };
    });
    return this.#writer.catch((error: unknown) => {
      this.#writer = null;
      throw error;
    });
  }

  /** Stores the batch and settles each of its commits. Never rejects. */
  async #store(batch: readonly WaitingCommit[]): Promise<void> {
    const number = ++this.#batch;
    /** null: COMMIT was not sent. */
    let decided: readonly CommitOutcome[] | null = null;
    try {
      const { batches } = await this.#connectedWriter();
      const commits = batch.map(({ statements }) => statements);
      const outcomes = await batches.store(commits, number, (outcomesOfCommit) => {
        decided = outcomesOfCommit;
      });
      this.#deps.alarms.clear(ALARM);
      answer(batch, outcomes);
    } catch (error) {
      const isStored =
        decided !== null && !(error instanceof BatchRefused) ? await this.#isStored(number) : false;
      if (isStored === true && decided !== null) return answer(batch, decided);
      if (isReadOnly(error)) void this.#refused();
      for (const { reject } of batch) reject(isStored === null ? outcomeUnknown(error) : failureOf(error));
    }
  }

  /** Asks the server whether the batch was stored; null: no timely answer, or nobody knows any more. */
  async #isStored(number: number): Promise<boolean | null> {
    const { clock } = this.#deps;
    this.#figures.outcomesAsked++;
    const deadline = clock.monotonic() + OUTCOME_MS;
    try {
      for (
        let wait = RECONNECT_MS;
        clock.monotonic() < deadline;
        wait = Math.min(2 * wait, MAX_RECONNECT_MS)
      ) {
        try {
          const { client } = await this.#connectedWriter();
          // Waits for a transaction of the lost connection that the server is still ending.
          const { rows } = await client.query<{ last: number }>(
            'SELECT last FROM store_batches WHERE writer = $1 FOR UPDATE',
            [this.#name],
          );
          const [row] = rows;
          if (row !== undefined) return row.last === number;
          // This process was ended, and its row removed with the end of the next one.
          break;
        } catch (error) {
          this.#isAway = true;
          for (const { reject } of this.#queue.takeWaiting()) reject(unreachable(error));
          await new Promise((resolve) => setTimeout(resolve, wait));
        }
      }
    } finally {
      this.#isAway = false;
    }
    this.#figures.outcomesUnknown++;
    return null;
  }
}

type Holding = Pick<NodeMembersDeps, 'onFenced' | 'onSilence' | 'onWrite' | 'migrate'>;

async function holdOf(
  { url, clock, node }: PostgresqlMetadataDeps,
  writer: string,
  { onFenced, ...others }: Holding,
): Promise<Hold> {
  if (node !== undefined) {
    const members = await NodeMembers.join({ url, writer, clock, node, onFenced, ...others });
    return { membership: members, release: () => members.release() };
  }
  const onTakenOver = (by: string) =>
    onFenced(`Another Cloudlet (${by}) has taken over the metadata database; this Cloudlet no longer writes`);
  const hold = await StoreHold.take({ url, writer, clock, onTakenOver, ...others });
  return { membership: ALONE, release: () => hold.release() };
}

const hasNul = (param: unknown) => typeof param === 'string' && param.includes('\0');

/** PostgreSQL has no texts with U+0000. */
function assertStorable(params: Statement['params']): void {
  if (!params.some(hasNul)) return;
  throw new AppError('invalid_request', 'Text must not contain the NUL character (U+0000)');
}

async function assertNotMovedAway(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ value: string }>('SELECT value FROM settings WHERE name = $1', [
    MOVED_SETTING,
  ]);
  if (rows[0] === undefined) return;
  const { to } = JSON.parse(rows[0].value) as Moved;
  throw new StartupError(
    `The metadata of this cloud was moved to ${to}: start Cloudlet with that data directory and without CLOUDLET_METADATA_URL`,
  );
}
