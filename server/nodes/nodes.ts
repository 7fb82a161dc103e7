/** The nodes of a cluster: list, drain, resume, remove. */
import type { Change, Changes, Recorder } from '../metadata/change.ts';
import { type Clock, formatTime } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import type { Membership, NodeChange, NodeLoad, NodeView } from '../platform/membership.ts';

export interface NodesDeps {
  readonly membership: Membership;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly version: string;
  /** Name of this host. */
  readonly hostName: string;
  readonly load: () => NodeLoad;
}

/** Name of the node that responds. */
const SELF = 'self';
const OLD_MS = 24 * 3_600_000;
/** The host may have been killed. */
const SILENT_MS = 3000;

export class Nodes {
  readonly #deps: NodesDeps;
  readonly #startedAt: number;

  constructor(deps: NodesDeps) {
    this.#deps = deps;
    this.#startedAt = deps.clock.now();
  }

  /** All nodes as of the last heartbeat; only this process without a cluster. */
  list() {
    const { membership } = this.#deps;
    if (!membership.isShared) return [this.#alone()];
    return membership.nodes().map((node) => present(node, node.runId === membership.runId));
  }

  /** Throws `not_a_cluster`, `node_not_found` or `node_invalid_state`. Resolves with the changed node. */
  async change(call: Recorder, id: string, to: Exclude<NodeChange, 'forgotten'>) {
    const { membership } = this.#deps;
    const node = this.#find(id);
    if (to === 'drained') this.#assertAnotherIsUp(node);
    const changed = { ...node, state: to === 'drained' ? 'draining' : 'up' } as const;
    const refusal = () => {
      // Another node may have been drained since the last heartbeat.
      if (to === 'drained') this.#assertAnotherIsUp(node);
      return invalid(node, `Only a node that is up or draining can be ${to}`, 'Start it again instead');
    };
    return this.#commit(call, { node, to, refusal }, present(changed, node.runId === membership.runId));
  }

  /** Refused for the same reasons. Resolves with the removed node. */
  async forget(call: Recorder, id: string) {
    const node = this.#find(id);
    const detail = 'Only a node that has left or is lost can be removed from the list';
    const refusal = () => invalid(node, detail, 'Stop the node first');
    return this.#commit(call, { node, to: 'forgotten', refusal }, present(node, false));
  }

  /** Stores the change with the entry of the call, and refreshes the list of this node. */
  async #commit<T>(call: Recorder, { node, to, refusal }: Wanted, answer: T): Promise<T> {
    const { membership, changes } = this.#deps;
    const refused = async () => {
      await membership.refresh();
      return refusal();
    };
    await changes.run(call, (change: Change) => {
      change.expect(membership.changing(node.nodeId, to), refused);
      return answer;
    });
    await membership.refresh();
    return answer;
  }

  /** Removes front nodes that have been away for a day: Kubernetes pods never return under the same name. */
  async forgetOld(): Promise<void> {
    const { membership, changes } = this.#deps;
    for (const { nodeId, isHost, state, beatAgeMs } of membership.nodes()) {
      const isAway = state === 'left' || state === 'lost';
      if (!isAway || isHost || beatAgeMs <= OLD_MS) continue;
      await changes.store([membership.changing(nodeId, 'forgotten')], 'skip');
    }
    await membership.refresh();
  }

  #find(id: string): NodeView {
    const { membership } = this.#deps;
    if (!membership.isShared)
      throw new AppError('not_a_cluster', 'This cloud is a single process, not a cluster', {
        hint: 'Set CLOUDLET_NODE_URL on each node: see docs/growth.md',
      });
    const found = membership.nodes().find(({ nodeId, runId }) => {
      return id === SELF ? runId === membership.runId : nodeId === id;
    });
    if (found === undefined)
      throw new AppError('node_not_found', `No node of this cluster has the id ${id}`, {
        hint: 'GET /api/admin/nodes lists them',
      });
    return found;
  }

  /** Jobs of the whole cluster run on nodes that are up: without one nothing is charged or swept. */
  #assertAnotherIsUp(node: NodeView): void {
    const others = this.#deps.membership.nodes().filter(({ nodeId }) => nodeId !== node.nodeId);
    if (others.some(({ state, beatAgeMs }) => state === 'up' && beatAgeMs < SILENT_MS)) return;
    throw invalid(node, 'This is the last node that is up', 'Start or resume another one first');
  }

  #alone() {
    const { clock, version, hostName, load } = this.#deps;
    const view: NodeView = {
      nodeId: SELF,
      runId: '',
      name: hostName,
      url: '',
      version,
      isHost: true,
      state: 'up',
      startedAt: Math.min(this.#startedAt, clock.now()),
      beatAgeMs: 0,
      leases: [],
      alarms: [],
      load: load(),
      ports: null,
      portsSeen: null,
      passed: [],
    };
    return present(view, true);
  }
}

interface Wanted {
  readonly node: NodeView;
  readonly to: NodeChange;
  /** The error if the state of the node does not allow it, from the refreshed list. */
  readonly refusal: () => AppError;
}

function invalid(node: NodeView, detail: string, hint: string): AppError {
  return new AppError('node_invalid_state', `${detail}: ${node.name} is ${node.state}`, { hint });
}

export const roleOf = ({ isHost }: NodeView) => (isHost ? ('host' as const) : ('front' as const));

function present(node: NodeView, isThis: boolean) {
  const { load } = node;
  return {
    node_id: node.nodeId,
    name: node.name,
    url: node.url === '' ? null : node.url,
    version: node.version,
    role: roleOf(node),
    state: node.state,
    since: formatTime(node.startedAt),
    // The clock of the database may have been set back.
    beat_age_seconds: Math.max(0, node.beatAgeMs) / 1000,
    leases: [...node.leases],
    is_this: isThis,
    load: load && {
      uptime_seconds: load.uptimeSeconds,
      cpu: load.cpu,
      memory: load.memory,
      resident_bytes: load.residentBytes,
    },
  };
}
