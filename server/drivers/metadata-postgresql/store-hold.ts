/**
 * Lets one process at a time write to a database. The holder records itself in a row and renews it
 * every second. A process that takes over marks the holder's row in `store_batches`, which each of
 * its batches changes: so a process that was disconnected and returns can store nothing.
 */
import { hostname } from 'node:os';
import type pg from 'pg';
import { StartupError } from '../../platform/data-directory.ts';
import { connect, cut, isReadOnly } from './connections.ts';
import { awaitFree, type Holder, holdersOf, nameOf, SILENT_MS } from './holders.ts';
import { makeStoreTables } from './postgresql-schema.ts';

export interface HoldDeps {
  readonly url: string;
  /** Unique id of this process as a writer of the database. */
  readonly writer: string;
  readonly clock: { now(): number; monotonic(): number };
  /** Called once when another process has taken over; `by` names it. */
  readonly onTakenOver: (by: string) => void;
  /** The server has not answered for SILENT_MS: its connections are useless. */
  readonly onSilence: () => void;
  /** Called with each heartbeat: whether the server takes writes. */
  readonly onWrite: (isTaken: boolean) => void;
}

const BEAT_MS = 1000;
const RELEASE_MS = 5000;
/** A batch that the server still stores delays a take-over. */
const LOCK_MS = 60_000;

export class StoreHold {
  readonly #deps: HoldDeps;
  #client: pg.Client | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isEnded = false;

  private constructor(deps: HoldDeps) {
    this.#deps = deps;
  }

  /**
   * Acquires the database once no other process holds it, which takes seconds after one was killed.
   * Rejects with a StartupError that names the holder, and with pg's errors.
   */
  static async take(deps: HoldDeps): Promise<StoreHold> {
    const hold = new StoreHold(deps);
    const client = await hold.#connected();
    try {
      await makeStoreTables(client);
      await client.query(`SET lock_timeout = ${LOCK_MS}`);
      await awaitFree(client, {
        now: () => deps.clock.monotonic(),
        isInTheWay: () => true,
        refusal: heldBy,
        enter: () => hold.#enter(client),
      });
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

  async #enter(client: pg.Client): Promise<void> {
    const { writer, clock } = this.#deps;
    await client.query('INSERT INTO store_batches (writer, last) VALUES ($1, 0)', [writer]);
    await client.query(
      `UPDATE store_holder SET writer = $1, host = $2, pid = $3, since = $4, beat_at = clock_timestamp()
       WHERE id = 1`,
      [writer, hostname(), process.pid, clock.now()],
    );
  }

  #schedule(): void {
    this.#timer = setTimeout(() => {
      void this.#beat().finally(() => {
        if (!this.#isEnded) this.#schedule();
      });
    }, BEAT_MS);
  }

  async #beat(): Promise<void> {
    const { writer, onSilence, onWrite } = this.#deps;
    const silence = setTimeout(() => {
      if (this.#client !== null) cut(this.#client);
      onSilence();
    }, SILENT_MS);
    try {
      const client = await this.#connected();
      // Losing a heartbeat in a crash of the server does no harm.
      const [, { rowCount }] = await Promise.all([
        client.query('SET synchronous_commit = off'),
        client.query('UPDATE store_holder SET beat_at = clock_timestamp() WHERE id = 1 AND writer = $1', [
          writer,
        ]),
      ]);
      onWrite(true);
      if (rowCount === 0 && !this.#isEnded) await this.#end(client);
    } catch (error) {
      // The store itself raises the alarm of all others. The primary may be elsewhere by now.
      if (!isReadOnly(error)) return;
      onWrite(false);
      if (this.#client !== null) cut(this.#client);
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
    const [holder] = await holdersOf(client);
    this.#isEnded = true;
    await client.end();
    this.#deps.onTakenOver(nameOf(holder));
  }
}

function heldBy(holder: Holder): StartupError {
  const fix =
    holder.node_id === null
      ? 'stop that Cloudlet, or use a separate database for this one'
      : 'it is a node of a cluster; set CLOUDLET_NODE_URL to join it, stop all its nodes, or use a separate database';
  return new StartupError(
    `The database in CLOUDLET_METADATA_URL is in use by the Cloudlet ${nameOf(holder)}: ${fix}`,
  );
}
