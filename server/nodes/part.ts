/** Creates the operations on cluster nodes, and publishes this node's state. */
import { hostname } from 'node:os';
import { Changes } from '../metadata/change.ts';
import type { Metadata } from '../metadata/metadata.ts';
import type { Alarms } from '../platform/alarms.ts';
import type { Clock } from '../platform/clock.ts';
import type { Membership, ToldPorts } from '../platform/membership.ts';
import type { Meters } from '../platform/prometheus.ts';
import { VERSION } from '../platform/version.ts';
import { Nodes, roleOf } from './nodes.ts';
import { nodeRoutes } from './routes.ts';

export interface NodesPartDeps {
  readonly membership: Membership;
  readonly metadata: Metadata;
  readonly alarms: Alarms;
  readonly clock: Clock;
  /** Ports of the host that other nodes open too. */
  readonly ports: { told(): ToldPorts; readonly seen: number | null } | undefined;
  readonly hostMetrics: { read(): { readonly cpu: number; readonly memory: number } };
}

export function nodesPart({ membership, metadata, alarms, clock, ports, hostMetrics }: NodesPartDeps) {
  const began = clock.monotonic();
  const load = () => {
    const { cpu, memory } = hostMetrics.read();
    const uptimeSeconds = Math.round((clock.monotonic() - began) / 1000);
    return { uptimeSeconds, cpu, memory, residentBytes: process.memoryUsage.rss() };
  };
  const changes = new Changes({ metadata });
  const nodes = new Nodes({ membership, changes, clock, version: VERSION, hostName: hostname(), load });
  return {
    routes: nodeRoutes(nodes),
    gauges: (meters: Meters) => meterNodes(meters, membership),
    jobs: [
      {
        name: 'forget nodes that have been away for a day',
        everyMs: HOUR_MS,
        per: 'cluster' as const,
        run: () => nodes.forgetOld(),
      },
    ],
    start: () => {
      const told = () => {
        if (!membership.isHost) return { ports: null, portsSeen: ports?.seen ?? null };
        return { ports: ports?.told() ?? null, portsSeen: null };
      };
      membership.report(() => {
        // told() may raise an alarm.
        const ofPorts = told();
        return { alarms: alarms.told(), load: load(), ...ofPorts };
      });
    },
  };
}

const HOUR_MS = 3_600_000;
const STATES = ['up', 'draining', 'left', 'lost'] as const;
const count = (all: readonly string[], one: string) => all.filter((each) => each === one).length;

/**
 * Each node reports all nodes, so that a lost one is noticed. A cloud of one process has none of
 * these series.
 */
function meterNodes(meters: Meters, membership: Membership): void {
  const type = 'gauge' as const;
  meters.series('cloudlet_nodes', {
    type,
    isPublic: true,
    help: 'Nodes of the cluster by state: up, draining, left or lost',
    labels: ['state'],
    read: () => {
      const states = membership.nodes().map(({ state }) => state);
      return states.length === 0
        ? []
        : STATES.map((state) => ({ labels: [state], value: count(states, state) }));
    },
  });
  meters.series('cloudlet_node_info', {
    type,
    help: '1 for each node of the cluster, with its state: up, draining, left or lost',
    labels: ['node', 'name', 'version', 'role', 'state'],
    read: () =>
      membership.nodes().map((node) => {
        const { nodeId, name, version, state } = node;
        return { labels: [nodeId, name, version, roleOf(node), state], value: 1 };
      }),
  });
  meters.series('cloudlet_node_beat_age_seconds', {
    type,
    help: 'Age of the last heartbeat of each node, which is sent every second',
    labels: ['node'],
    read: () =>
      membership.nodes().map(({ nodeId, beatAgeMs }) => {
        return { labels: [nodeId], value: Math.max(0, beatAgeMs) / 1000 };
      }),
  });
  meters.series('cloudlet_node_leases', {
    type,
    help: 'Leases of each node: jobs of the cluster that it runs',
    labels: ['node'],
    read: () => membership.nodes().map(({ nodeId, leases }) => ({ labels: [nodeId], value: leases.length })),
  });
}
