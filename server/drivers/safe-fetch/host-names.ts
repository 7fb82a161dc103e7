/**
 * Resolves untrusted host names. getaddrinfo(3) blocks one of the process's few threads while a name server
 * is silent: two such names would stop all resolution. So DNS is queried without threads; for unknown names,
 * such as those in the host's files or domain, the host is asked one at a time.
 */
import { promises as dns, type LookupAddress } from 'node:dns';

/** Timeout of a name server, ms, and number of attempts. */
const TIMEOUT_MS = 2000;
const TRIES = 2;
/** Names that wait for the host. */
const MAX_WAITING = 16;

export class HostNames {
  readonly #resolver = new dns.Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
  #waiting = 0;
  #last: Promise<unknown> = Promise.resolve();

  /** `servers`: `address:port`; default: the host's. */
  constructor(servers?: readonly string[]) {
    if (servers !== undefined) this.#resolver.setServers(servers);
  }

  /** At least one address. Rejects with an Error whose code says why, as in node:dns. */
  async find(name: string): Promise<LookupAddress[]> {
    // A name without a dot belongs to this host or its domain.
    const found = name.includes('.') ? await this.#ask(name) : [];
    return found.length > 0 ? found : this.#askHost(name);
  }

  async #ask(name: string): Promise<LookupAddress[]> {
    const [v4, v6] = await Promise.all([
      this.#resolver.resolve4(name).catch((): string[] => []),
      this.#resolver.resolve6(name).catch((): string[] => []),
    ]);
    const as = (family: number) => (address: string) => ({ address, family });
    return [...v4.map(as(4)), ...v6.map(as(6))];
  }

  async #askHost(name: string): Promise<LookupAddress[]> {
    if (this.#waiting >= MAX_WAITING) {
      throw Object.assign(new Error('too many names are being looked up'), { code: 'EAI_AGAIN' });
    }
    this.#waiting++;
    const found = this.#last.then(() => dns.lookup(name, { all: true }));
    this.#last = found.catch(() => {});
    return found.finally(() => this.#waiting--);
  }
}
