/**
 * The nodes with which a process shares its metadata, as far as it knows. A cloud of one process
 * has no other nodes: ALONE answers immediately.
 */

import type { ToldAlarm } from './alarms.ts';
import type { Clock } from './clock.ts';

/** The report that a node sends with its heartbeats. */
export interface NodeReport {
  readonly alarms: readonly ToldAlarm[];
  /** null: not reported yet. */
  readonly load: NodeLoad | null;
  /** null: not reported yet, or no ports. */
  readonly ports: ToldPorts | null;
  /** The host's ToldPorts.version up to which the node has its ports; null: not reported yet, or the host. */
  readonly portsSeen: number | null;
  /** Leases whose work fails there, for another node to take. */
  readonly passed: readonly string[];
}

/** TCP ports of the host node to which users connect, and which front nodes open too. */
export interface ToldPorts {
  /** The network namespace: nodes in the same one cannot listen on the same address. */
  readonly place: string;
  /** The address that it listens on itself; `*`: all. */
  readonly addresses: readonly string[];
  /** Ports by protocol, as ranges: `25432-25440,25500`. */
  readonly of: Readonly<Record<string, string>>;
  /** Increases with each new port, also over restarts. Earlier versions of Cloudlet do not report it. */
  readonly version?: number;
}

export interface NodeLoad {
  readonly uptimeSeconds: number;
  /** CPU and memory usage of its host, in percent. */
  readonly cpu: number;
  readonly memory: number;
  /** Memory of its process. */
  readonly residentBytes: number;
}

/** A node of the cluster. */
export interface NodeView extends NodeReport {
  /** `nod-…`, of its data directory. */
  readonly nodeId: string;
  /** The newest process of the node: see Membership.runId. */
  readonly runId: string;
  readonly name: string;
  /** URL at which other nodes reach its API. */
  readonly url: string;
  readonly version: string;
  readonly isHost: boolean;
  /** `left`: it was stopped; `lost`: it was silent, and can no longer store anything. */
  readonly state: 'up' | 'draining' | 'left' | 'lost';
  /** ms since 1970, by its clock. */
  readonly startedAt: number;
  /** Age of the last heartbeat, by the database's clock. */
  readonly beatAgeMs: number;
  /** Names of its leases. */
  readonly leases: readonly string[];
}

export interface Membership {
  /** This run of this node, different after a restart. '' for a cloud of one process. */
  readonly runId: string;
  /** Other nodes may change cached data. */
  readonly isShared: boolean;
  /** This node has the machines, the images and the servers of databases. */
  readonly isHost: boolean;
  /** False while the metadata accept no heartbeat of this node: its caches may be out of date. */
  isCurrent(): boolean;
  /**
   * True once that run of a node can no longer store anything, or has left. `aliveAt`: a time at which it
   * ran, ms since 1970; one that joined after the last heartbeat is not listed yet. Default: long ago.
   */
  isGone(runId: string, aliveAt?: number): boolean;
  /** `own`, corrected to the metadata server's time, so that the hosts' clocks do not matter. */
  clock(own: Clock): Clock;
  /**
   * Whether this node may begin work under the lease: acquires it if this node is the preferred
   * holder and no other node has it. A lease for which another live node is preferred is released,
   * once it is not `inUse`.
   */
  holds(lease: string, inUse?: boolean): Promise<boolean>;
  /**
   * The work of the lease fails here: for the next ten minutes another node is preferred, if there
   * is one.
   */
  pass(lease: string): void;
  /** All nodes as of the last heartbeat; [] for a cloud of one process. */
  nodes(): readonly NodeView[];
  /** Called after each heartbeat, when nodes() may have changed, until the returned function is called. */
  onNews(listener: () => void): () => void;
  /**
   * Reports at once, and makes the others read it at once: a host its fronts, a front the host. If
   * messages between nodes are lost, they read it with their next heartbeat.
   */
  hurry(): void;
  /** Stops taking leases, and announces that this node is about to end. */
  drain(): Promise<void>;
  /** This node acquires no leases, as of the last heartbeat, and proxies must send it no new requests. */
  isDraining(): boolean;
  /** Each heartbeat then reports this to the others; alarms above 16 KiB are omitted. */
  report(of: () => Omit<NodeReport, 'passed'>): void;
  /**
   * The statement that changes another node, or this one, by its `nod-…`: from `up` to `draining`,
   * back, or removes it from the list once it is `left` or `lost`. Refused if its state does not
   * allow the change.
   */
  changing(nodeId: string, to: NodeChange): NodeStatement;
  /** Reads nodes() now, after a change. Without an answer they are as of the last heartbeat. */
  refresh(): Promise<void>;
}

/** For a commit of the metadata. */
export interface NodeStatement {
  readonly sql: string;
  readonly params: readonly string[];
  readonly expectChanges: 1;
}

export type NodeChange = 'drained' | 'resumed' | 'forgotten';

/** A single process with its own metadata. */
export const ALONE: Membership = {
  runId: '',
  isShared: false,
  isHost: true,
  isCurrent: () => true,
  isGone: () => false,
  clock: (own) => own,
  holds: async () => true,
  pass: () => {},
  nodes: () => [],
  onNews: () => () => {},
  hurry: () => {},
  drain: async () => {},
  isDraining: () => false,
  report: () => {},
  changing: () => {
    throw new Error('a single process has no nodes to change');
  },
  refresh: async () => {},
};
