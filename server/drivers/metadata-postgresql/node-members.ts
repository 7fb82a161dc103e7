/**
 * Nodes that write to one database side by side. Each renews its row every second, by the clock of
 * the database. Any node ends one that is silent for ten seconds: the silent node's row in
 * `store_batches`, which each of its batches changes, then forbids it to write, so leases need no
 * fence of their own (unlike Temporal's shards).
 */
import type pg from 'pg';
import type { Clock } from '../../platform/clock.ts';
import type { Membership, NodeReport, NodeView } from '../../platform/membership.ts';
import { connect, cut, isReadOnly } from './connections.ts';
import { awaitFree, endIfSilent, type Holder, refusalOf, SILENT_MS } from './holders.ts';
import { NodeLeases } from './node-leases.ts';
import { changeOf, isLive, NODES, type NodeRow, OwnReport, viewOf } from './node-rows.ts';
import { makeStoreTables } from './postgresql-schema.ts';

/** A node that joins. */
export interface JoiningNode {
  /** `nod-…`, of its data directory. */
  readonly nodeId: string;
  readonly name: string;
  readonly url: string;
  readonly version: string;
  readonly isHost: boolean;
}

export interface NodeMembersDeps {
  readonly url: string;
  readonly writer: string;
  readonly node: JoiningNode;
  readonly clock: { now(): number; monotonic(): number };
  /** Called once when this node may store nothing more. */
  readonly onFenced: (detail: string) => void;
  /** The server has not answered for SILENT_MS: its connections are useless. */
  readonly onSilence: () => void;
  /** Called with each heartbeat: whether the server takes writes. */
  readonly onWrite: (isTaken: boolean) => void;
  /** Brings the schema to this version, which may take minutes. */
  readonly migrate: () => Promise<void>;
}

const BEAT_MS = 1000;
/** Minimum time between requested heartbeats; concurrent requests share one. */
const HURRY_MS = 20;
/** Channel on which nodes with a new report announce their role: `host` or `front`. */
const CHANNEL = 'cloudlet_nodes';
/** A node whose heartbeats fail for this long does not trust its caches. */
const TRUST_MS = 3000;
/** The times of two nodes differ by less, as both follow the clock of the database. */
const CLOCKS_MS = 1000;
const RELEASE_MS = 5000;
/** A batch that the server still stores delays a starting node. */
const LOCK_MS = 60_000;

export class NodeMembers implements Membership {
  readonly #deps: NodeMembersDeps;
  readonly #leases: NodeLeases;
  readonly #report = new OwnReport();
  readonly #listeners = new Set<() => void>();
  /** The next heartbeat is due at once. */
  #isDue = false;
  #isBeating = false;
  /** The next heartbeat is also announced to others. */
  #isToldNext = false;
  readonly #watched = new Map<string, { readonly beat: string; readonly since: number }>();
  #client: pg.Client | null = null;
  #connecting: Promise<pg.Client> | null = null;
  /** The connection that ends silent nodes. */
  #ending: Promise<pg.Client> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isEnded = false;
  #rows: readonly NodeRow[] = [];
  /** Monotonic time when the last stored heartbeat was sent. */
  #beatAt = 0;
  /** Lead of the clock of the database over the monotonic clock, ms. */
  #aheadMs: number;
  readonly isShared = true;
  readonly changing = changeOf;

  private constructor(deps: NodeMembersDeps) {
    this.#deps = deps;
    this.#aheadMs = deps.clock.now() - deps.clock.monotonic();
    this.#leases = new NodeLeases({
      writer: deps.writer,
      clock: deps.clock,
      rows: () => this.#rows,
      connected: () => this.#connected(),
    });
  }

  /**
   * Joins the nodes of the database, once a sole writer or an earlier process of this node has ended, and
   * after the migrations: a node that migrates does no work, so no lease waits for it. Rejects with a
   * StartupError that names the blocking process, and with the errors of `migrate` and of pg.
   */
  static async join(deps: NodeMembersDeps): Promise<NodeMembers> {
    const members = new NodeMembers(deps);
    const { node, clock, migrate } = deps;
    const client = await members.#connected();
    try {
      await makeStoreTables(client);
      await client.query(`SET lock_timeout = ${LOCK_MS}`);
      await client.query('SET synchronous_commit = on');
      const arrival = {
        now: () => clock.monotonic(),
        isInTheWay: (holder: Holder) =>
          holder.node_id === null || holder.node_id === node.nodeId || (node.isHost && holder.is_host === 1),
        refusal: (holder: Holder) => refusalOf(holder, node),
      };
      await awaitFree(client, { ...arrival, enter: async () => {} });
      await migrate();
      await awaitFree(client, { ...arrival, enter: () => members.#enter(client) });
      await members.#beat();
      members.#schedule();
      return members;
    } catch (error) {
      await client.end();
      throw error;
    }
  }

  get runId(): string {
    return this.#deps.writer;
  }

  get isHost(): boolean {
    return this.#deps.node.isHost;
  }

  get #role(): 'host' | 'front' {
    return this.isHost ? 'host' : 'front';
  }

  isCurrent(): boolean {
    return !this.#isEnded && this.#deps.clock.monotonic() - this.#beatAt < TRUST_MS;
  }

  isGone(runId: string, aliveAt = 0): boolean {
    if (runId === this.runId || this.#rows.some((row) => row.writer === runId && isLive(row))) return false;
    return aliveAt < this.#beatAt + this.#aheadMs - CLOCKS_MS;
  }

  nodes(): readonly NodeView[] {
    return this.#rows.map(viewOf);
  }

  clock(own: Clock): Clock {
    return {
      now: () => Math.floor(own.monotonic() + this.#aheadMs),
      monotonic: () => own.monotonic(),
      uptime: () => own.uptime(),
    };
  }

  async holds(lease: string, inUse = false): Promise<boolean> {
    return this.isCurrent() && (await this.#leases.holds(lease, inUse));
  }

  pass(lease: string): void {
    if (this.#leases.pass(lease)) this.hurry();
  }

  async drain(): Promise<void> {
    await this.#setState('draining');
  }

  /** Leaves the cluster. */
  async release(): Promise<void> {
    this.#isEnded = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    void this.#ending?.then(cut, () => {});
    const client = this.#client;
    if (client === null) return;
    const hung = setTimeout(() => cut(client), RELEASE_MS);
    try {
      await this.#setState('left');
      await this.#leases.release(client);
      await client.query('DELETE FROM store_batches WHERE writer = $1', [this.runId]);
      await client.end();
    } catch {
      // Other nodes detect the silence, and end it.
    } finally {
      clearTimeout(hung);
    }
  }

  async #setState(state: NodeView['state']): Promise<void> {
    const client = await this.#connected();
    await client.query(
      "UPDATE store_nodes SET state = $1 WHERE writer = $2 AND state IN ('up', 'draining')",
      [state, this.runId],
    );
  }

  async #enter(client: pg.Client): Promise<void> {
    const { writer, clock, node } = this.#deps;
    await client.query('UPDATE store_holder SET writer = NULL WHERE id = 1');
    await client.query('INSERT INTO store_batches (writer, last) VALUES ($1, 0)', [writer]);
    await client.query(
      `INSERT INTO store_nodes (node_id, writer, name, url, version, is_host, state, pid, since, beat_at)
       VALUES ($1, $2, $3, $4, $5, $6, 'up', $7, $8, clock_timestamp())
       ON CONFLICT (node_id) DO UPDATE SET writer = excluded.writer, name = excluded.name, url = excluded.url,
         version = excluded.version, is_host = excluded.is_host, state = 'up', pid = excluded.pid,
         since = excluded.since, beat_at = excluded.beat_at, report = ''`,
      [node.nodeId, writer, node.name, node.url, node.version, Number(node.isHost), process.pid, clock.now()],
    );
  }

  onNews(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  hurry(): void {
    this.#isToldNext = true;
    this.#beatSoon();
  }

  #beatSoon(): void {
    if (this.#isEnded || this.#isDue) return;
    this.#isDue = true;
    if (this.#isBeating || this.#timer === null) return;
    clearTimeout(this.#timer);
    this.#schedule();
  }

  #schedule(): void {
    this.#timer = setTimeout(
      () => {
        this.#isDue = false;
        this.#isBeating = true;
        void this.#beatSafely().finally(() => {
          this.#isBeating = false;
          if (!this.#isEnded) this.#schedule();
        });
      },
      this.#isDue ? HURRY_MS : BEAT_MS,
    );
  }

  async #beatSafely(): Promise<void> {
    const silence = setTimeout(() => {
      if (this.#client !== null) cut(this.#client);
      this.#deps.onSilence();
    }, SILENT_MS);
    try {
      await this.#beat();
      void this.#endSilent();
    } catch (error) {
      // The store itself raises the alarm, and isCurrent() is false soon.
      if (isReadOnly(error)) this.#leave();
    } finally {
      clearTimeout(silence);
    }
  }

  /** The primary may be elsewhere by now. */
  #leave(): void {
    this.#deps.onWrite(false);
    if (this.#client !== null) cut(this.#client);
  }

  async #beat(): Promise<void> {
    const { clock, onWrite } = this.#deps;
    const sentAt = clock.monotonic();
    const client = await this.#connected();
    const report = this.#report.changed();
    const isTold = this.#isToldNext;
    this.#isToldNext = false;
    const [, { rowCount, rows: stored }, { rows }] = await Promise.all([
      // Losing a heartbeat in a crash of the server does no harm.
      client.query('SET synchronous_commit = off'),
      client.query<{ now_ms: number }>(
        `UPDATE store_nodes SET beat_at = clock_timestamp(), report = COALESCE($2, report)
         WHERE writer = $1 AND state IN ('up', 'draining')
         RETURNING extract(epoch FROM clock_timestamp()) * 1000 AS now_ms`,
        [this.runId, report],
      ),
      client.query<NodeRow>(NODES),
      isTold ? client.query('SELECT pg_notify($1, $2)', [CHANNEL, this.#role]) : undefined,
    ]);
    onWrite(true);
    if (rowCount === 0) {
      if (!this.#isEnded) await this.#end(client, rows);
      return;
    }
    if (report !== null) this.#report.stored(report);
    // A node that was not watching all the time cannot know that another was silent.
    if (sentAt - this.#beatAt > TRUST_MS) this.#watched.clear();
    this.#beatAt = sentAt;
    // Between request and response: an answer that comes late proves little, and moves no clock.
    const [{ now_ms: nowMs } = { now_ms: clock.now() }] = stored;
    this.#aheadMs = Math.min(nowMs - sentAt, Math.max(nowMs - clock.monotonic(), this.#aheadMs));
    this.#rows = rows;
    this.#leases.read(rows);
    for (const { writer, beat } of rows.filter(isLive)) {
      if (this.#watched.get(writer)?.beat !== beat) this.#watched.set(writer, { beat, since: sentAt });
    }
    for (const listener of this.#listeners) listener();
  }

  /**
   * Over a connection of its own: the server may take long to end a batch of the other node, while heartbeats
   * go on; and a lease must not be part of a transaction that may be undone.
   */
  async #endSilent(): Promise<void> {
    const silent = this.#silent();
    if (silent.length === 0 || this.#ending !== null) return;
    const { url, writer: own } = this.#deps;
    const connecting = connect({ url, writer: own, onEnd: () => {} });
    this.#ending = connecting;
    try {
      const client = await connecting;
      const hung = setTimeout(() => cut(client), LOCK_MS + SILENT_MS).unref();
      await client.query(`SET lock_timeout = ${LOCK_MS}`);
      for (const writer of silent) if (await endIfSilent(client, writer)) this.#watched.delete(writer);
      clearTimeout(hung);
      await client.end();
    } catch {
      // The next heartbeat tries again.
      await connecting.then(cut, () => {});
    } finally {
      this.#ending = null;
    }
  }

  /** Nodes without a heartbeat for all the time that this node has watched. */
  #silent(): string[] {
    const isSilent = ({ writer, age_ms }: NodeRow) => {
      const watchedMs = this.#beatAt - (this.#watched.get(writer)?.since ?? this.#beatAt);
      return writer !== this.runId && watchedMs >= SILENT_MS && age_ms >= SILENT_MS;
    };
    return this.#rows
      .filter(isLive)
      .filter(isSilent)
      .map(({ writer }) => writer);
  }

  /** Leases and the heartbeat ask at the same time. */
  async #connected(): Promise<pg.Client> {
    if (this.#client !== null) return this.#client;
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = null;
    });
    return this.#connecting;
  }

  async #connect(): Promise<pg.Client> {
    const { url, writer } = this.#deps;
    const onEnd = () => {
      if (this.#client === client) this.#client = null;
    };
    const client: pg.Client = await connect({ url, writer, onEnd });
    client.on('notification', ({ payload }) => {
      if (payload !== this.#role) this.#beatSoon();
    });
    try {
      // A standby refuses it.
      await client.query(`LISTEN ${CHANNEL}`);
    } catch (error) {
      cut(client);
      throw error;
    }
    this.#client = client;
    return client;
  }

  async #end(client: pg.Client, rows: readonly NodeRow[]): Promise<void> {
    this.#isEnded = true;
    this.#rows = rows;
    await client.end();
    const { name, nodeId } = this.#deps.node;
    this.#deps.onFenced(
      `This node (${name}, ${nodeId}) sent no heartbeat for ${SILENT_MS / 1000} s, and another node has declared it lost`,
    );
  }

  isDraining(): boolean {
    return this.#rows.some(({ writer, state }) => writer === this.runId && state === 'draining');
  }

  report(of: () => Omit<NodeReport, 'passed'>): void {
    this.#report.of = () => ({ ...of(), passed: this.#leases.passed() });
  }

  async refresh(): Promise<void> {
    try {
      const client = await this.#connected();
      this.#rows = (await client.query<NodeRow>(NODES)).rows;
    } catch {
      // The next heartbeat reads them.
    }
  }
}
