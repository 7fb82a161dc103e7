/** Rows of the nodes of a database, with each node's report to the others, as JSON. */
import type { NodeChange, NodeReport, NodeStatement, NodeView } from '../../platform/membership.ts';

export interface NodeRow {
  readonly node_id: string;
  readonly writer: string;
  readonly name: string;
  readonly url: string;
  readonly version: string;
  readonly is_host: number;
  readonly state: NodeView['state'];
  readonly since: number;
  readonly age_ms: number;
  readonly beat: string;
  readonly leases: string[] | null;
  readonly report: string;
}

/** A node silent for longer does not count as up: it may have ended without leaving. */
const SILENT_SECONDS = 3;

export const NODES = `SELECT node_id, writer, name, url, version, is_host, state, since, report, beat_at::text AS beat,
    floor(extract(epoch FROM clock_timestamp() - beat_at) * 1000) AS age_ms,
    (SELECT array_agg(l.name ORDER BY l.name) FROM store_leases l WHERE l.writer = n.writer) AS leases
  FROM store_nodes n ORDER BY is_host DESC, name, node_id`;

const CHANGES: Readonly<Record<NodeChange, string>> = {
  // A change waits for the locks of all nodes, and then sees their current state: if two nodes are
  // drained at once, one stays.
  drained: `WITH locked AS (SELECT node_id, state, beat_at FROM store_nodes ORDER BY node_id FOR UPDATE)
    UPDATE store_nodes SET state = 'draining' WHERE node_id = ? AND (state = 'draining'
      OR state = 'up' AND EXISTS (SELECT FROM locked o WHERE o.node_id <> ? AND o.state = 'up'
        AND o.beat_at > clock_timestamp() - interval '${SILENT_SECONDS} s'))`,
  resumed: "UPDATE store_nodes SET state = 'up' WHERE node_id = ? AND state IN ('up', 'draining')",
  forgotten: "DELETE FROM store_nodes WHERE node_id = ? AND state IN ('left', 'lost')",
};

/** Refused if the state of the node does not allow the change. */
export function changeOf(nodeId: string, to: NodeChange): NodeStatement {
  const params = to === 'drained' ? [nodeId, nodeId] : [nodeId];
  return { sql: CHANGES[to], params, expectChanges: 1 };
}

export function isLive({ state }: NodeRow): boolean {
  return state === 'up' || state === 'draining';
}

export function viewOf(row: NodeRow): NodeView {
  return {
    nodeId: row.node_id,
    runId: row.writer,
    name: row.name,
    url: row.url,
    version: row.version,
    isHost: row.is_host === 1,
    state: row.state,
    startedAt: row.since,
    beatAgeMs: row.age_ms,
    leases: row.leases ?? [],
    ...readReport(row.report),
  };
}

/** Each node reads all rows every second. */
const MAX_BYTES = 16_384;
const NOTHING: NodeReport = { alarms: [], load: null, ports: null, portsSeen: null, passed: [] };

/** The report of this node, and its stored part. */
export class OwnReport {
  of: () => NodeReport = () => NOTHING;
  #stored = '';

  /** The text to store now; null: nothing has changed. */
  changed(): string | null {
    const text = reportText(this.of());
    return text === this.#stored ? null : text;
  }

  stored(text: string): void {
    this.#stored = text;
  }
}

/** At most 16 KiB: texts for accounts are omitted first, then the last alarms. */
export function reportText({ alarms, ...rest }: NodeReport): string {
  const whole = JSON.stringify({ alarms, ...rest });
  if (fits(whole)) return whole;
  const kept = alarms.map(({ code, detail, fix, since }) => ({ code, detail, fix, since }));
  for (;;) {
    const text = JSON.stringify({ alarms: kept, ...rest });
    if (fits(text) || kept.length === 0) return text;
    kept.pop();
  }
}

/** Nodes of other versions may report other data: unreadable parts are ignored. */
export function readReport(text: string): NodeReport {
  try {
    const read = JSON.parse(text) as Partial<NodeReport>;
    const { alarms, load = null, ports = null, portsSeen = null, passed } = read;
    return { alarms: listOf(alarms), load, ports, portsSeen, passed: listOf(passed) };
  } catch {
    return NOTHING;
  }
}

function listOf<T>(value: readonly T[] | undefined): readonly T[] {
  return Array.isArray(value) ? value : [];
}

const fits = (text: string) => Buffer.byteLength(text) <= MAX_BYTES;
