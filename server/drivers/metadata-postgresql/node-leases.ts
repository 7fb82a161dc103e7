/** The leases of a node: for work that one node at a time does, such as a job of the whole cloud. */
import { createHash } from 'node:crypto';
import type pg from 'pg';
import { type NodeRow, readReport } from './node-rows.ts';

const PASS_MS = 600_000;

interface NodeLeasesDeps {
  /** Id of this run of the node. */
  readonly writer: string;
  readonly clock: { monotonic(): number };
  /** All nodes, as of the last heartbeat. */
  readonly rows: () => readonly NodeRow[];
  readonly connected: () => Promise<pg.Client>;
}

export class NodeLeases {
  readonly #deps: NodeLeasesDeps;
  #held = new Set<string>();
  /** Leases for which another node is preferred, with the end of that time. */
  readonly #passed = new Map<string, number>();

  constructor(deps: NodeLeasesDeps) {
    this.#deps = deps;
  }

  /** See Membership; of a node that is current. */
  async holds(lease: string, inUse: boolean): Promise<boolean> {
    const isOurs = this.#held.has(lease);
    if (this.#isChosen(lease) === isOurs) return isOurs;
    if (isOurs && inUse) return false;
    const client = await this.#deps.connected();
    if (isOurs) {
      this.#held.delete(lease);
      await client.query('DELETE FROM store_leases WHERE name = $1 AND writer = $2', [
        lease,
        this.#deps.writer,
      ]);
      // A heartbeat on its way meanwhile may have added the lease again.
      this.#held.delete(lease);
      return false;
    }
    // A node that was ended must not leave a lease behind.
    await client.query(
      `INSERT INTO store_leases (name, writer)
       SELECT $1, writer FROM store_nodes WHERE writer = $2 AND state = 'up' FOR SHARE
       ON CONFLICT DO NOTHING`,
      [lease, this.#deps.writer],
    );
    const { rows } = await client.query<{ writer: string }>(
      'SELECT writer FROM store_leases WHERE name = $1',
      [lease],
    );
    if (rows[0]?.writer !== this.#deps.writer) return false;
    this.#held.add(lease);
    return true;
  }

  /**
   * For the next ten minutes another node is preferred for the lease; it is released at once, if
   * there is one. False: it was passed on already.
   */
  pass(lease: string): boolean {
    const isNew = !this.passed().includes(lease);
    this.#passed.set(lease, this.#deps.clock.monotonic() + PASS_MS);
    if (this.#held.has(lease) && !this.#isChosen(lease)) void this.holds(lease, false).catch(() => {});
    return isNew;
  }

  /** Leases that were passed on, for the report of this node. */
  passed(): readonly string[] {
    const now = this.#deps.clock.monotonic();
    for (const [lease, until] of this.#passed) if (now > until) this.#passed.delete(lease);
    return [...this.#passed.keys()];
  }

  /** Adopts the database's state, which may have lost a lease in a crash of the server. */
  read(rows: readonly NodeRow[]): void {
    this.#held = new Set(rows.find(({ writer }) => writer === this.#deps.writer)?.leases ?? []);
  }

  /** Releases all of them. */
  async release(client: pg.Client): Promise<void> {
    await client.query('DELETE FROM store_leases WHERE writer = $1', [this.#deps.writer]);
  }

  /** Whether this node has the highest hash of a lease: leases are spread over the nodes that live. */
  #isChosen(lease: string): boolean {
    const up = this.#deps.rows().filter(({ state }) => state === 'up');
    const own = this.#deps.writer;
    const able = up.filter(({ writer, report }) => {
      return !(writer === own ? this.passed() : readReport(report).passed).includes(lease);
    });
    const scores = (able.length > 0 ? able : up).map(({ writer }) => ({
      writer,
      score: scoreOf(lease, writer),
    }));
    const best = scores.reduce((a, b) => (b.score > a.score ? b : a), { writer: '', score: '' });
    return best.writer === this.#deps.writer;
  }
}

/** Highest random weight (Thaler and Ravishankar, 1998). */
function scoreOf(lease: string, writer: string): string {
  return createHash('sha256').update(`${lease} ${writer}`).digest('hex');
}
