/** The state of machines and databases as a front node of a cluster knows it: they are on the host node. */
import type { Membership } from '../platform/membership.ts';
import type { ComputeStatus, DatabaseEngineStatus } from './status.ts';

const AWAY = {
  problem: 'The node with machines and databases is not reachable',
  fix: 'Start it again. Machines keep running, and all other calls work',
};

function liveHost(membership: Membership): string | undefined {
  return membership.nodes().find(({ isHost, state }) => isHost && state !== 'left' && state !== 'lost')?.name;
}

/** `engine`: the hypervisor's name. */
export function computeElsewhere(membership: Membership, engine: string): ComputeStatus {
  const host = liveHost(membership);
  const unknown = { version: '', accel: '' };
  if (host === undefined) return { engine, isUsable: false, ...unknown, accelReason: '', ...AWAY };
  return { engine, isUsable: true, ...unknown, accelReason: `on node ${host}`, problem: '', fix: '' };
}

/** `engines`: their names. */
export function databasesElsewhere(
  membership: Membership,
  engines: readonly string[],
): readonly DatabaseEngineStatus[] {
  const host = liveHost(membership);
  const [reason, fix] = host === undefined ? [AWAY.problem, AWAY.fix] : [null, null];
  const state = { available: host !== undefined, version: null, source: 'node', reason, fix };
  return engines.map((engine) => ({ engine, ...state }));
}
