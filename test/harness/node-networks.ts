/**
 * A network namespace for each node of a cluster, as on separate hosts: one link to the other nodes and to
 * clients, and one to the database and S3, which can be taken down separately. Clients are on this host.
 */
import { execFileSync, spawnSync } from 'node:child_process';

export interface NodeNetwork {
  /** Address at which others reach the node. */
  readonly address: string;
  /** Address of this host on the node's link to the database. */
  readonly gateway: string;
  /** Prefix of the node's command. */
  readonly wrapper: readonly string[];
  /** Takes the link to the database down: no connection ends, and no data arrives. */
  cut(): void;
  join(): void;
}

/** Why there can be none, or false. */
export function noNodeNetworks(): string | false {
  if (process.getuid?.() !== 0) return 'needs root';
  const name = `cloudlet-probe-${process.pid}`;
  const isPossible = spawnSync('ip', ['netns', 'add', name], { stdio: 'ignore' }).status === 0;
  if (isPossible) ip('netns', 'delete', name);
  return isPossible ? false : 'this host gives no network namespaces';
}

export class NodeNetworks {
  readonly #id = process.pid;
  /** Third number of the addresses; each node takes one more for its database. */
  readonly #second = 64 + (process.pid % 128);
  #names: string[] = [];
  readonly #bridge: string;

  constructor() {
    this.#bridge = `clb${this.#id}`;
    ip('link', 'add', this.#bridge, 'type', 'bridge');
    ip('address', 'add', `${this.host}/24`, 'dev', this.#bridge);
    ip('link', 'set', this.#bridge, 'up');
  }

  /** Address of this host for the nodes. */
  get host(): string {
    return `10.${this.#second}.0.1`;
  }

  /** All addresses, as a range. */
  get range(): string {
    return `10.${this.#second}.0.0/16`;
  }

  add(): NodeNetwork {
    const i = this.#names.length + 1;
    const name = `cloudlet-${this.#id}-${i}`;
    this.#names.push(name);
    ip('netns', 'add', name);
    const inside = (...words: string[]) => ip('-n', name, ...words);
    inside('link', 'set', 'lo', 'up');
    const [address, gateway] = [`10.${this.#second}.0.${i + 1}`, `10.${this.#second}.${i}.1`];
    const [front, back] = [`clf${this.#id}-${i}`, `cld${this.#id}-${i}`];
    ip('link', 'add', front, 'type', 'veth', 'peer', 'name', 'front', 'netns', name);
    ip('link', 'set', front, 'master', this.#bridge, 'up');
    inside('address', 'add', `${address}/24`, 'dev', 'front');
    inside('link', 'set', 'front', 'up');
    ip('link', 'add', back, 'type', 'veth', 'peer', 'name', 'back', 'netns', name);
    ip('address', 'add', `${gateway}/30`, 'dev', back);
    ip('link', 'set', back, 'up');
    inside('address', 'add', `10.${this.#second}.${i}.2/30`, 'dev', 'back');
    inside('link', 'set', 'back', 'up');
    return {
      address,
      gateway,
      wrapper: ['ip', 'netns', 'exec', name],
      cut: () => ip('link', 'set', back, 'down'),
      join: () => ip('link', 'set', back, 'up'),
    };
  }

  /** Once no process runs in them. */
  close(): void {
    for (const name of this.#names) ip('netns', 'delete', name);
    this.#names = [];
    ip('link', 'delete', this.#bridge);
  }
}

function ip(...words: string[]): void {
  execFileSync('ip', words, { stdio: 'pipe', env: { PATH: `${process.env.PATH}:/usr/sbin:/sbin` } });
}
