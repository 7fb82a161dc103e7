/**
 * Leads new connections of this host past the proxy, straight to the servers behind the doors, where root may
 * place rules of nftables: a hop costs a small statement a third of its time. Only so many a second: what is
 * beyond that goes by the proxy, which has the bounds.
 */
import { HostToolError, nft } from '../host-network/host-tool.ts';
import { PROXY_ADDRESS } from './passage.ts';

const LOOPBACK = '127.0.0.1';
/** Connections past us to one door: at once, and each second. */
const BURST = 40;
const RATE = 10;
const IS_NEW = 'tcp flags & (fin | syn | rst | ack) == syn';

export class DirectWays {
  readonly #table: string;
  /** Ports of servers by those of their doors. */
  readonly #ways = new Map<number, number>();
  #problem: string | null;
  #placing: Promise<void> | null = null;
  #next: Promise<void> | null = null;

  constructor(table: string, isRoot = process.getuid?.() === 0) {
    this.#table = table;
    this.#problem = isRoot ? null : 'only root may place rules of nftables';
  }

  /** Why connections go by the proxy, for humans; null: those of this host do not. */
  get problem(): string | null {
    return this.#problem;
  }

  /** Resolves when it is in force. Never rejects. */
  async set(door: number, server: number | null): Promise<void> {
    if (this.#problem !== null || (this.#ways.get(door) ?? null) === server) return;
    if (server === null) this.#ways.delete(door);
    else this.#ways.set(door, server);
    await this.#place();
  }

  /** Takes all of them away. Never rejects. */
  async close(): Promise<void> {
    this.#ways.clear();
    if (this.#problem === null) await this.#place();
  }

  /** Changes that come meanwhile go together. */
  async #place(): Promise<void> {
    if (this.#next !== null) return this.#next;
    const before = this.#placing ?? Promise.resolve();
    this.#next = before.then(() => {
      this.#next = null;
      this.#placing = this.#placeNow();
      return this.#placing;
    });
    return this.#next;
  }

  async #placeNow(): Promise<void> {
    try {
      await nft(directRules(this.#table, this.#ways));
    } catch (error) {
      this.#problem = error instanceof HostToolError ? error.message : String(error);
      // What may be left of it would lead to servers that are gone.
      await nft(directRules(this.#table, new Map())).catch(() => undefined);
    }
  }
}

/** A table that stands in the place of the one of that name, in one step; without ways there is none. */
export function directRules(table: string, ways: ReadonlyMap<number, number>): string {
  const removal = [`table ip ${table}`, `delete table ip ${table}`];
  if (ways.size === 0) return `${removal.join('\n')}\n`;
  const to = `ip daddr ${LOOPBACK} tcp dport`;
  const led = [...ways].map(
    ([door, server]) =>
      `    ${to} ${door} limit rate ${RATE}/second burst ${BURST} packets dnat to ${LOOPBACK}:${server}`,
  );
  const servers = [...ways.values()].join(', ');
  return [
    ...removal,
    `table ip ${table} {`,
    '  chain ways {',
    '    type nat hook output priority -100; policy accept;',
    ...led,
    '  }',
    '  chain others {',
    '    type filter hook output priority 10; policy accept;',
    `    ${to} { ${servers} } ${IS_NEW} ct status & dnat == 0 ip saddr != ${PROXY_ADDRESS} reject with tcp reset`,
    '  }',
    '}',
    '',
  ].join('\n');
}
