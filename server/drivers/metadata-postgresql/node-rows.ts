/** Rows of the nodes of a database. */
import type { NodeChange, NodeView } from '../../platform/membership.ts';
import { readReport } from './node-reports.ts';

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

/** A node that is silent for longer does not count as up: it may have ended without a word. */
const SILENT_SECONDS = 3;

export const NODES = `SELECT node_id, writer, name, url, version, is_host, state, since, report, beat_at::text AS beat,
    floor(extract(epoch FROM clock_timestamp() - beat_at) * 1000) AS age_ms,
    (SELECT array_agg(l.name ORDER BY l.name) FROM store_leases l WHERE l.writer = n.writer) AS leases
  FROM store_nodes n ORDER BY is_host DESC, name, node_id`;

export const CHANGES: Readonly<Record<NodeChange, string>> = {
  // A change waits for the locks of all nodes, and then sees them as they are: of two nodes that are
  // drained at once, one stays.
  drained: `WITH locked AS (SELECT node_id, state, beat_at FROM store_nodes ORDER BY node_id FOR UPDATE)
    UPDATE store_nodes SET state = 'draining' WHERE node_id = $1 AND (state = 'draining'
      OR state = 'up' AND EXISTS (SELECT FROM locked o WHERE o.node_id <> $1 AND o.state = 'up'
        AND o.beat_at > clock_timestamp() - interval '${SILENT_SECONDS} s'))`,
  resumed: "UPDATE store_nodes SET state = 'up' WHERE node_id = $1 AND state IN ('up', 'draining')",
  forgotten: "DELETE FROM store_nodes WHERE node_id = $1 AND state IN ('left', 'lost')",
};

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
