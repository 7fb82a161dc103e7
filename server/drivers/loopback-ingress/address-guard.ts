/**
 * Keeps other programs of this host from accepting connections to machines' addresses. If root may add rules,
 * a machine listens on otherwise unused ports, and the rules redirect to them; a program that listens on all
 * addresses, such as sshd, then neither answers for a machine nor fails to start because of one.
 */
import { BlockList, createServer, type Server } from 'node:net';
import { AppError } from '../../platform/errors.ts';
import { nft } from '../host-network/host-tool.ts';
import { closed, isUnclaimed, listenAt, NEUTRAL } from './host-addresses.ts';

interface AddressGuardDeps {
  /** The network of all machines: `127.80.0.0/16`. */
  readonly network: string;
  readonly isRoot?: boolean;
}

/** Port below the kernel's ephemeral ports. */
const FIRST_LISTEN_PORT = 24_000;
const MAX_TAKEN = 1000;
const BLOCK_PREFIX = 24;
/** Machines of a killed cloud may have been in another network than ours. */
export const LOOPBACK = '127.0.0.0/8';

export class AddressGuard {
  readonly #deps: AddressGuardDeps;
  readonly #prefix: number;
  readonly #blocks = new Set<string>();
  /** Actual ports of machines, by public port. */
  readonly #listenPorts = new Map<number, number>();
  /** Reserve these ports against programs that listen on all addresses. */
  readonly #holders: Server[] = [];
  #next = FIRST_LISTEN_PORT;
  /** Machines on their own ports would be cut off by later rules. */
  #isOff = false;
  #queue: Promise<unknown> = Promise.resolve();
  /** Problem of the last change. */
  #problem: AppError | null = null;
  #refusal: AppError | null = null;

  constructor(deps: AddressGuardDeps) {
    this.#deps = deps;
    this.#prefix = Math.max(BLOCK_PREFIX, Number(deps.network.split('/')[1]));
  }

  get #mayPlace(): boolean {
    const { network, isRoot = process.getuid?.() === 0 } = this.#deps;
    // Other networks are also reached by other hosts, which these rules do not cover.
    return isRoot && network.startsWith('127.');
  }

  /** Error of the last ensure(); null: the rules are in place or not needed. */
  get refusal(): AppError | null {
    return this.#refusal;
  }

  /** First address of the block that an address is in. */
  blockOf(address: string): string {
    const last = Number(address.split('.')[3]);
    const size = 2 ** (32 - this.#prefix);
    return address.replace(/\d+$/, String(last - (last % size)));
  }

  /**
   * The ports to listen on for these ports of `address`, once connections are redirected to them; listen on a
   * missing one directly. The block of the address must be ours. Never rejects.
   */
  async listenPorts(address: string, ports: readonly number[]): Promise<ReadonlyMap<number, number>> {
    const base = this.blockOf(address);
    await this.protect(base, ports);
    return this.#blocks.has(base) ? this.#listenPorts : new Map();
  }

  /** From now on, only machines answer on this block. Never rejects. */
  protect(base: string, ports: readonly number[] = []): Promise<void> {
    if (!this.#mayPlace) return Promise.resolve();
    return this.#inTurn(async () => {
      if (this.#isOff) return;
      const unknown = ports.filter((port) => !this.#listenPorts.has(port));
      if (this.#blocks.has(base) && unknown.length === 0) return;
      const listenPorts = new Map(this.#listenPorts);
      for (const port of unknown) listenPorts.set(port, await this.#freePort());
      const blocks = unknown.length === 0 ? [base] : new Set([...this.#blocks, base]);
      this.#isOff = !(await this.#place([...blocks], listenPorts));
      if (this.#isOff) return this.#releasePorts();
      this.#blocks.add(base);
      for (const [port, listenPort] of listenPorts) this.#listenPorts.set(port, listenPort);
    });
  }

  /** Restores the rules, which another program may have removed. Throws when that cannot be done. */
  async ensure(): Promise<void> {
    await this.#inTurn(() => this.#place([...this.#blocks], this.#listenPorts));
    this.#refusal = this.#problem;
    if (this.#refusal !== null) throw this.#refusal;
  }

  /**
   * Removes unused rules: those of a Cloudlet that was killed, and whose machines are gone. To be called when
   * the blocks of all machines are claimed. Never rejects.
   */
  sweep(): Promise<void> {
    if (!this.#mayPlace) return Promise.resolve();
    return this.#inTurn(async () => {
      const listed = await nft(LIST).catch(() => '');
      const left = basesIn(listed, LOOPBACK).filter((base) => !this.#blocks.has(base));
      for (const base of left) if (await isUnclaimed(base)) await nft(removalOf(base)).catch(() => undefined);
    });
  }

  /** Removes the rules. Never rejects. */
  release(): Promise<void> {
    return this.#inTurn(async () => {
      const removals = [...this.#blocks].map((base) => removalOf(base));
      this.#blocks.clear();
      await this.#releasePorts();
      if (removals.length > 0) await nft(removals.join('')).catch(() => undefined);
    });
  }

  /** A port on which no program listens at any address, reserved from now on. */
  async #freePort(): Promise<number> {
    for (let tries = 0; tries < MAX_TAKEN; tries++) {
      const port = this.#next++;
      const holder = createServer((client) => client.destroy());
      if ((await listenAt(holder, { address: NEUTRAL, port })) !== null) continue;
      this.#holders.push(holder.unref());
      return port;
    }
    return this.#next++;
  }

  async #releasePorts(): Promise<void> {
    await Promise.all(this.#holders.splice(0).map(closed));
  }

  async #place(blocks: readonly string[], listenPorts: ReadonlyMap<number, number>): Promise<boolean> {
    if (blocks.length === 0) return true;
    try {
      await nft(blocks.map((base) => addressRules({ base, prefix: this.#prefix, listenPorts })).join(''));
      this.#problem = null;
    } catch (error) {
      this.#problem = asRefusal(error);
    }
    return this.#problem === null;
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => undefined);
    return done;
  }
}

function asRefusal(cause: unknown): AppError {
  const problem = cause instanceof Error ? cause.message : String(cause);
  const detail = `programs of this host that listen on all addresses can answer on machines' addresses: ${problem}`;
  const hint =
    "apt-get install nftables, and give Cloudlet CAP_NET_ADMIN and the kernel's nf_tables; then restart it";
  return new AppError('engine_unavailable', detail, { hint, cause });
}

interface AddressRules {
  /** First address of the block. */
  readonly base: string;
  readonly prefix: number;
  /** Actual ports of machines, by public port. */
  readonly listenPorts: ReadonlyMap<number, number>;
}

/**
 * Atomically replaces the table of that name. New connections of this host to ports of machines are
 * redirected to their actual ports, at the same address; all others are refused.
 */
export function addressRules({ base, prefix, listenPorts }: AddressRules): string {
  const block = `ip daddr ${base}/${prefix}`;
  const map = [...listenPorts].map(([port, listenPort]) => `${port} : ${listenPort}`).join(', ');
  const isNew = 'tcp flags & (fin | syn | rst | ack) == syn';
  return [
    ...[`table ${tableOf(base)}`, `delete table ${tableOf(base)}`, `table ${tableOf(base)} {`],
    '  chain redirection {',
    '    type nat hook output priority -100; policy accept;',
    ...(listenPorts.size === 0 ? [] : [`    ${block} ip protocol tcp dnat to :tcp dport map { ${map} }`]),
    '  }',
    '  chain others {',
    '    type filter hook output priority 10; policy accept;',
    `    ${block} ${isNew} ct status & dnat == 0 reject with tcp reset`,
    '  }',
    '}',
    '',
  ].join('\n');
}

/** Removes the table of a block; no error if missing. */
function removalOf(base: string): string {
  return `table ${tableOf(base)}\ndelete table ${tableOf(base)}\n`;
}

/** Lists the tables. */
export const LIST = 'list tables ip\n';

/** First addresses of the network's blocks with tables, from the output of LIST. */
export function basesIn(listed: string, network: string): string[] {
  const [first = '', prefix = ''] = network.split('/');
  const blocks = [...listed.matchAll(/^table ip cloudlet_(\d+)_(\d+)_(\d+)_(\d+)$/gm)];
  const inside = new BlockList();
  inside.addSubnet(first, Number(prefix));
  return blocks.map((block) => block.slice(1).join('.')).filter((base) => inside.check(base));
}

/** The table of a block, with its family. */
export function tableOf(base: string): string {
  return `ip cloudlet_${base.replaceAll('.', '_')}`;
}
