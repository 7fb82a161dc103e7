/**
 * Whether the host node responds: known from its heartbeats, or, while these are late, from a
 * request. On a busy host heartbeats may be seconds late although requests are served.
 */
import type { ClientRequest } from 'node:http';
import type { Membership, NodeView } from '../../platform/membership.ts';
import type { NodeLinks } from './forward.ts';

/** Heartbeats older than this are late. */
const LATE_MS = 3000;
/** Time for a response to the probe. A forwarded call without progress ends after both times. */
const PROBE_MS = 2000;

export class HostLife {
  readonly #membership: Pick<Membership, 'nodes'>;
  readonly #links: NodeLinks;
  /** The running probe. */
  #probe: Promise<boolean> | undefined;
  /** Run of a host that did not respond; it counts as lost until its heartbeats are in time. */
  #lost: string | undefined;

  constructor(membership: Pick<Membership, 'nodes'>, links: NodeLinks) {
    this.#membership = membership;
    this.#links = links;
  }

  /** The host node if it responds. Waits for a probe while its heartbeats are late. */
  async responding(): Promise<NodeView | undefined> {
    const host = this.#live();
    if (host === undefined || host.beatAgeMs < LATE_MS) return host;
    return (await this.#responds(host)) ? host : undefined;
  }

  /** False until a probe has failed. Call periodically: starts probes while heartbeats are late. */
  isLost(): boolean {
    const host = this.#live();
    if (host === undefined) return true;
    if (host.beatAgeMs >= LATE_MS) void this.#responds(host);
    return this.#lost === host.runId;
  }

  #live(): NodeView | undefined {
    const host = this.#membership.nodes().find(isLiveHost);
    if (host === undefined || host.beatAgeMs < LATE_MS) this.#lost = undefined;
    return host;
  }

  async #responds({ runId, url }: NodeView): Promise<boolean> {
    if (this.#lost === runId) return false;
    this.#probe ??= responded(this.#links, url).finally(() => {
      this.#probe = undefined;
    });
    const isAlive = await this.#probe;
    if (!isAlive) this.#lost = runId;
    return isAlive;
  }
}

function isLiveHost({ isHost, state }: NodeView): boolean {
  return isHost && (state === 'up' || state === 'draining');
}

/** Any response counts: a process that responds serves requests. Never rejects. */
function responded(links: NodeLinks, url: string): Promise<boolean> {
  const headers = ['Host', new URL(url).host];
  return new Promise((resolve) => {
    // Its own connection, because a kept one may be busy.
    const probe: ClientRequest = links.request(url, {
      method: 'GET',
      path: '/healthz',
      headers,
      isUpgrade: true,
    });
    const limit = setTimeout(() => probe.destroy(), PROBE_MS);
    probe.once('response', () => {
      resolve(true);
      probe.destroy();
    });
    probe.once('error', () => {});
    probe.once('close', () => {
      clearTimeout(limit);
      resolve(false);
    });
    probe.end();
  });
}
