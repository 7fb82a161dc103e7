/** The server for the specification tests of MongoDB, and their requirements for it. */
import { type Db, MongoClient } from 'mongodb';

export interface Requirement {
  readonly minServerVersion?: string | undefined;
  readonly maxServerVersion?: string | undefined;
  readonly topologies?: readonly string[];
  /** Always `forbid`, which none of ours is. */
  readonly serverless?: string;
}

const KNOWN = ['minServerVersion', 'maxServerVersion', 'topologies', 'serverless'];

/** The tests' own database, on a connection that they do not monitor. */
export class Server {
  readonly url: string;
  readonly client: MongoClient;
  readonly #version: string;
  readonly #topology: string;

  private constructor(client: MongoClient, about: { url: string; version: string; topology: string }) {
    this.client = client;
    this.url = about.url;
    this.#version = about.version;
    this.#topology = about.topology;
  }

  static async connect(url: string): Promise<Server> {
    const client = await new MongoClient(url).connect();
    const { version } = await client.db().command({ buildInfo: 1 });
    const hello = await client.db().command({ hello: 1 });
    const topology = hello.setName ? 'replicaset' : hello.msg === 'isdbgrid' ? 'sharded' : 'single';
    return new Server(client, { url, version, topology });
  }

  get db(): Db {
    return this.client.db();
  }

  /** Why a test does not apply to this server, if it meets none of these. */
  unmet(requirements: readonly Requirement[] | undefined): string | undefined {
    if (requirements === undefined || requirements.some((each) => this.#meets(each))) return undefined;
    return `it is for a server ${requirements.map(described).join(' or ')}`;
  }

  #meets(requirement: Requirement): boolean {
    const { minServerVersion: from, maxServerVersion: to, topologies } = requirement;
    const unknown = Object.keys(requirement).filter((name) => !KNOWN.includes(name));
    if (unknown.length > 0) throw new Error(`the runner does not know the requirement ${unknown}`);
    if (from !== undefined && isOlder(this.#version, from)) return false;
    if (to !== undefined && isOlder(to, this.#version)) return false;
    return topologies === undefined || topologies.includes(this.#topology);
  }
}

function isOlder(version: string, than: string): boolean {
  const [mine, other] = [version, than].map((text) => text.split('.').map(Number));
  const at = [0, 1, 2].find((part) => (mine?.[part] ?? 0) !== (other?.[part] ?? 0));
  return at !== undefined && (mine?.[at] ?? 0) < (other?.[at] ?? 0);
}

function described({ minServerVersion: from, maxServerVersion: to, topologies }: Requirement): string {
  const kinds = topologies && `that is ${topologies.join(' or ')}`;
  const bounds = [from && `from ${from} on`, to && `up to ${to}`, kinds];
  return bounds.filter(Boolean).join(' ');
}
