/** Forwarding of requests between the nodes of a cluster. */
import type { Clock } from '../../platform/clock.ts';
import { newId } from '../../platform/ids.ts';
import type { Membership } from '../../platform/membership.ts';
import { Forward, type ForwardDeps } from './forward.ts';
import type { PassedTo } from './passed-ports.ts';
import { type Forwarded, SignedCalls } from './signed-calls.ts';

export interface Forwarding {
  /** null: this cloud has no other nodes. */
  readonly forwarded: Forwarded | null;
  /** Local ports to which other nodes forward connections. */
  readonly ports: PassedTo;
  /** undefined: machines and databases are here. */
  begin(deps: Pick<ForwardDeps, 'proxies' | 'control' | 'most'>): Forward | undefined;
  close(): void;
}

interface ForwardingDeps {
  readonly membership: Membership;
  /** undefined: other nodes forward no connections to this host. */
  readonly ports: PassedTo | undefined;
  readonly secrets: { get(name: string): Promise<Buffer> };
  readonly clock: Clock;
  /** Connections to other nodes. */
  readonly links: ForwardDeps['links'] & { close(): void };
}

export const NO_OTHER_NODE: Forwarding = {
  forwarded: null,
  ports: { has: () => false, take: () => false },
  begin: () => undefined,
  close: () => {},
};

/** Name of the secret with which nodes sign. */
const SECRET = 'nodes';

/** Rejects with AppError `data_corrupted` if the cluster secret cannot be unsealed. */
export async function openForwarding({
  membership,
  ports = NO_OTHER_NODE.ports,
  secrets,
  clock,
  links,
}: ForwardingDeps): Promise<Forwarding> {
  if (!membership.isShared) return NO_OTHER_NODE;
  const calls = new SignedCalls({ secret: await secrets.get(SECRET), membership, clock });
  const way = { membership, calls, links, newId: () => newId('req', clock) };
  return {
    forwarded: calls,
    ports,
    begin: (deps) => (membership.isHost ? undefined : new Forward({ ...deps, ...way })),
    close: () => links.close(),
  };
}
