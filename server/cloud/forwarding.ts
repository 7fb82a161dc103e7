/** The way of requests between the nodes of a cluster. */
import { NodeLinks } from '../drivers/node-proxy/node-links.ts';
import { Forward, type ForwardDeps } from '../http/forwarding/forward.ts';
import { type Forwarded, SignedCalls } from '../http/forwarding/signed-calls.ts';
import type { Clock } from '../platform/clock.ts';
import type { Foundations } from './foundations.ts';

export interface Forwarding {
  /** null: this cloud has no other node. */
  readonly forwarded: Forwarded | null;
  /** undefined: machines and databases are here. */
  begin(deps: Pick<ForwardDeps, 'proxies' | 'control' | 'most'>): Forward | undefined;
  close(): void;
}

export const NO_OTHER_NODE: Forwarding = {
  forwarded: null,
  begin: () => undefined,
  close: () => {},
};

/** Name of the secret that nodes sign with. */
const SECRET = 'nodes';

/** Rejects with AppError `data_corrupted` if the secret of the nodes cannot be unsealed. */
export async function openForwarding(
  { membership, secrets }: Pick<Foundations, 'membership' | 'secrets'>,
  clock: Clock,
): Promise<Forwarding> {
  if (!membership.isShared) return NO_OTHER_NODE;
  const calls = new SignedCalls({ secret: await secrets.get(SECRET), membership, clock });
  const links = new NodeLinks();
  return {
    forwarded: calls,
    begin: (deps) => (membership.isHost ? undefined : new Forward({ ...deps, membership, calls, links })),
    close: () => links.close(),
  };
}
