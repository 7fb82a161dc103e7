/**
 * Routes new connections of this host past the proxy, directly to the servers behind its listeners, where
 * root may set nftables rules: the proxy doubles the cost of a small statement. Connections above a rate pass
 * through the proxy, which enforces the limits.
 */
import { systemClock } from '../../platform/clock.ts';
import type { CloudClaim } from '../host-network/cloud-claim.ts';
import { HostToolError, nft } from '../host-network/host-tool.ts';
import { type RouteTable, removalOf, routeTables, TABLE_PREFIX, tablesInTheWay } from './left-routes.ts';
import { PROXY_ADDRESS } from './passage.ts';

export interface DirectRoutesDeps {
  /** Names the table, so that no other cloud of this host uses it or removes it while we run. */
  readonly claim: CloudClaim;
  readonly warn: (text: string) => void;
  /** The user that may place rules, and that the proxy runs as; null: it may not. For tests. */
  readonly uid?: number | null;
}

type Routes = ReadonlyMap<number, number>;

const LOOPBACK = '127.0.0.1';
/** Direct connections to one public port: burst, and per second. */
const BURST = 40;
const RATE = 10;
const IS_NEW = 'tcp flags & (fin | syn | rst | ack) == syn';
const RETRY_MS = 5000;

/** A cloud killed while we run is noticed with the next listener after this time. */
const FRESH_MS = 10_000;

export class DirectRoutes {
  readonly #deps: DirectRoutesDeps;
  readonly #uid: number | null;
  /** Server ports by their public ports. */
  readonly #routes = new Map<number, number>();
  /** Applied state; null: unknown, the whole table is replaced. */
  #placed: Routes | null = null;
  #problem: string | null;
  /** The program is missing: no rules were or will be placed. */
  #isOff: boolean;
  #isClosed = false;
  #turn: Promise<void> = Promise.resolve();
  /** Ports that we listen at. */
  readonly #ports = new Set<number>();
  /** All tables of this host, as of then. */
  #tables: { readonly at: number; readonly found: Promise<readonly RouteTable[]> } | null = null;
  readonly #removed = new Set<string>();
  #next: Promise<void> | null = null;
  #retry: NodeJS.Timeout | undefined;

  constructor({ uid = process.getuid?.() === 0 ? 0 : null, ...deps }: DirectRoutesDeps) {
    this.#deps = deps;
    this.#uid = uid;
    this.#isOff = uid === null;
    this.#problem = uid === null ? 'nftables rules require root' : null;
  }

  /** Why local connections use the proxy, for people; null: they bypass it. */
  get problem(): string | null {
    return this.#problem;
  }

  /**
   * Call before listening on a port: places the table, and removes those of killed clouds that would redirect
   * its connections. Never rejects.
   */
  async begin(port: number): Promise<void> {
    if (this.#isOff || this.#isClosed) return;
    if (!(await this.#deps.claim.hold())) return this.#turnOff('this host has no abstract sockets');
    this.#ports.add(port);
    if (this.#placed === null && this.#problem === null) return this.#place();
    const removals = await this.#removals();
    if (removals !== '') await nft(removals).catch(() => undefined);
  }

  /** Resolves when in force or failed. Existing connections continue. Never rejects. */
  async set(port: number, server: number | null): Promise<void> {
    if (server === null) this.#routes.delete(port);
    else this.#routes.set(port, server);
    await this.#place();
  }

  /** Removes all rules. Never rejects. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    await this.#place();
  }

  /** Commands that remove conflicting tables of killed clouds. */
  async #removals(): Promise<string> {
    const now = systemClock.monotonic();
    if (this.#tables === null || now - this.#tables.at > FRESH_MS)
      this.#tables = { at: now, found: routeTables({ isBrief: true }).catch(() => []) };
    const about = { cloudId: this.#deps.claim.cloudId, ports: this.#ports };
    const tables = tablesInTheWay(await this.#tables.found, about).filter(
      ({ name }) => !this.#removed.has(name),
    );
    for (const { name, why } of tables) {
      this.#removed.add(name);
      this.#deps.warn(`nftables: removing the table ${name}: ${why}`);
    }
    return tables.map(({ name }) => removalOf(name)).join('');
  }

  #turnOff(problem: string): void {
    this.#isOff = true;
    this.#problem = problem;
  }

  /** Concurrent changes are applied together. */
  #place(): Promise<void> {
    if (this.#isOff) return Promise.resolve();
    this.#next ??= this.#turn.then(() => {
      this.#next = null;
      this.#turn = this.#placeNow();
      return this.#turn;
    });
    return this.#next;
  }

  async #placeNow(): Promise<void> {
    const routes = new Map(this.#routes);
    const table = this.#table;
    if (this.#isClosed) return void (await nft(removalOf(table)).catch(() => undefined));
    try {
      const change = this.#placed === null ? null : changeOf(table, this.#placed, routes);
      if (change === '') return;
      // Other programs may have removed the table: then it is created again.
      const isChanged = change !== null && (await nft(change).then(isDone, () => false));
      // In one step: connections routed by our killed process continue.
      if (!isChanged) await nft((await this.#removals()) + this.#whole(routes));
      this.#placed = routes;
      this.#problem = null;
    } catch (error) {
      await this.#fail(error);
    }
  }

  /** Leftover rules must not lead to servers that are gone. */
  async #fail(error: unknown): Promise<void> {
    const { warn } = this.#deps;
    const before = this.#problem;
    this.#placed = null;
    this.#problem = error instanceof Error ? error.message : String(error);
    this.#isOff = error instanceof HostToolError && error.isMissing;
    if (this.#isOff) return;
    if (this.#problem !== before)
      warn(`local connections to databases use the proxy: ${this.#problem}; retrying`);
    await nft(removalOf(this.#table)).catch(() => undefined);
    this.#retry = setTimeout(() => void this.#place(), RETRY_MS).unref();
  }

  get #table(): string {
    return `${TABLE_PREFIX}${this.#deps.claim.mark}`;
  }

  #whole(routes: Routes): string {
    const { comment } = this.#deps.claim;
    return tableOf({ table: this.#table, routes, uid: this.#uid ?? 0, comment });
  }
}

interface Table {
  readonly table: string;
  readonly routes: Routes;
  /** The proxy's. */
  readonly uid: number;
  /** The cloud that places it, for people. */
  readonly comment: string;
}

/**
 * Replaces the table of that name in one step. New connections to a public port are redirected to its server;
 * others to a server are refused unless they are the proxy's. It remains when empty: removing the last table
 * of a host would end redirected connections.
 */
export function tableOf({ table, routes, uid, comment }: Table): string {
  const to = `ip daddr ${LOOPBACK} tcp dport`;
  const limit = `update @bounds { tcp dport limit rate ${RATE}/second burst ${BURST} packets }`;
  return [
    removalOf(table).trimEnd(),
    `table ip ${table} {`,
    '  set ports { type inet_service; }',
    '  map routes { type inet_service : inet_service; }',
    '  set servers { type inet_service; }',
    '  set bounds { type inet_service; flags dynamic; size 65535; }',
    '  chain leading {',
    '    type nat hook output priority -100; policy accept;',
    `    ${to} @ports ${limit} dnat to ${LOOPBACK} : tcp dport map @routes`,
    '  }',
    '  chain others {',
    '    type filter hook output priority 10; policy accept;',
    `    ${to} @servers ${IS_NEW} ct status & dnat == 0 jump guarded comment "${comment}"`,
    '  }',
    '  chain guarded {',
    `    ip saddr ${PROXY_ADDRESS} meta skuid ${uid} accept`,
    '    reject with tcp reset',
    '  }',
    '}',
    changeOf(table, new Map(), routes),
  ].join('\n');
}

/**
 * Adds and removes only the entries that differ, keeping the rate limits of all others; empty: no difference.
 */
export function changeOf(table: string, from: Routes, to: Routes): string {
  const isIn =
    (routes: Routes) =>
    ([port, server]: readonly [number, number]) =>
      routes.get(port) === server;
  const lines = (verb: string, routes: readonly (readonly [number, number])[]) =>
    routes.flatMap(([port, server]) => [
      `${verb} element ip ${table} ports { ${port} }`,
      `${verb} element ip ${table} routes { ${port} : ${server} }`,
      `${verb} element ip ${table} servers { ${server} }`,
    ]);
  const gone = lines(
    'delete',
    [...from].filter((route) => !isIn(to)(route)),
  );
  const come = lines(
    'add',
    [...to].filter((route) => !isIn(from)(route)),
  );
  return [...gone, ...come].map((line) => `${line}\n`).join('');
}

const isDone = () => true;
