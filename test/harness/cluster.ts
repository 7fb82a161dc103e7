/** Nodes on one PostgreSQL and one S3: a host with machines and databases, and front nodes. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { notificationFilter } from '../../server/testing/notification-filter.ts';
import { operatorPostgresql } from '../../server/testing/operator-postgresql.ts';
import type { OperatorServer } from '../../server/testing/operator-server.ts';
import { noPostgresql } from '../../server/testing/postgresql-fixture.ts';
import { S3Fixture } from '../../server/testing/s3-fixture.ts';
import { TcpProxy } from '../../server/testing/tcp-proxy.ts';
import { type CloudOptions, CloudProcess } from './cloud-process.ts';
import { freePort } from './free-port.ts';
import type { NodeNetwork } from './node-networks.ts';

/** Why no cluster can be started here, or false. */
export const noCluster = noPostgresql;

interface HowStarted extends Pick<CloudOptions, 'dataDir' | 'wrapper' | 'command'> {
  /** Its own network; its command runs there. */
  readonly network?: NodeNetwork;
}

/** Port of the API on nodes with their own networks. */
const PORT_APART = 8080;

export class Cluster {
  readonly #server: OperatorServer;
  readonly #s3: S3Fixture;
  readonly #env: Readonly<Record<string, string>>;
  /** The first has the machines and databases. */
  readonly nodes: CloudProcess[] = [];
  /** The connection of each node to the metadata, which can be blocked or cut. */
  readonly ways: TcpProxy[] = [];
  readonly #waysToS3: TcpProxy[] = [];
  /** Connections that lose only the messages between nodes. */
  readonly #deaf = new Set<TcpProxy>();

  private constructor(server: OperatorServer, s3: S3Fixture, env: Readonly<Record<string, string>>) {
    this.#server = server;
    this.#s3 = s3;
    this.#env = env;
  }

  /** Resolves once all nodes answer. */
  static async start(
    count: number,
    env: Readonly<Record<string, string>> = {},
    how: HowStarted = {},
  ): Promise<Cluster> {
    const server = await operatorPostgresql();
    const s3 = await S3Fixture.start();
    const cluster = new Cluster(server, s3, env);
    try {
      for (let i = 0; i < count; i++) await cluster.add({}, how);
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  /** Starts another node, with its own connection to the metadata. */
  async add(
    env: Readonly<Record<string, string>> = {},
    { network, ...how }: HowStarted = {},
  ): Promise<CloudProcess> {
    const { address, gateway } = network ?? { address: '127.0.0.1', gateway: '127.0.0.1' };
    const port = network === undefined ? await freePort() : PORT_APART;
    const way: TcpProxy = await TcpProxy.to(this.#server.port, gateway, () =>
      notificationFilter(() => this.#deaf.has(way)),
    );
    this.ways.push(way);
    const s3 = this.#s3.url('cluster');
    const [host] = this.nodes;
    const front =
      host === undefined
        ? {}
        : { CLOUDLET_COMPUTE: 'off', CLOUDLET_MASTER_KEY_FILE: join(host.dataDir, 'master.key') };
    const node = await CloudProcess.start({
      ...how,
      ...(network === undefined ? {} : { wrapper: network.wrapper }),
      env: {
        CLOUDLET_METADATA_URL: at(this.metadataUrl, gateway, way),
        CLOUDLET_BLOBS_URL: network === undefined ? s3 : at(s3, gateway, await this.#wayToS3(gateway)),
        CLOUDLET_HOST: address,
        CLOUDLET_NODE_URL: `http://${address}:${port}`,
        CLOUDLET_NODE_NAME: host === undefined ? 'host' : `front-${this.nodes.length}`,
        CLOUDLET_PORT: String(port),
        ...front,
        ...this.#env,
        ...env,
      },
    });
    this.nodes.push(node);
    return node;
  }

  async #wayToS3(gateway: string): Promise<TcpProxy> {
    const way = await TcpProxy.to(Number(new URL(this.#s3.url('cluster')).port), gateway);
    this.#waysToS3.push(way);
    return way;
  }

  /** Until hear(), no NOTIFY of the database reaches the node. */
  deafen(node: CloudProcess): void {
    this.#deaf.add(this.#wayOf(node));
  }

  hear(node: CloudProcess): void {
    this.#deaf.delete(this.#wayOf(node));
  }

  #wayOf(node: CloudProcess): TcpProxy {
    return this.ways[this.nodes.indexOf(node)] as TcpProxy;
  }

  /** Stops a node in order, and starts it with other code on its data directory, ports and settings. */
  async replace(node: CloudProcess, how: HowStarted): Promise<CloudProcess> {
    assert.equal(await node.end(), 0);
    const next = await node.with(how);
    this.nodes[this.nodes.indexOf(node)] = next;
    return next;
  }

  /** Another node, on the port of the first at another address of the loopback. */
  addAt(address: string): Promise<CloudProcess> {
    const { port } = new URL(this.nodes[0]?.api ?? '');
    const url = `http://${address}:${port}`;
    return this.add({ CLOUDLET_HOST: address, CLOUDLET_PORT: port, CLOUDLET_NODE_URL: url });
  }

  /** Another node, with its own connection to S3. */
  async addWithOwnWay(): Promise<{ node: CloudProcess; way: TcpProxy }> {
    const url = new URL(this.#s3.url('cluster'));
    const way = await TcpProxy.to(Number(url.port));
    this.#waysToS3.push(way);
    url.port = String(way.port);
    return { node: await this.add({ CLOUDLET_BLOBS_URL: url.href }), way };
  }

  /** PostgreSQL with the metadata, to be disturbed. */
  get database(): OperatorServer {
    return this.#server;
  }

  /** The location of the metadata. */
  get metadataUrl(): string {
    return this.#server.url('postgres', 'of-the-operator');
  }

  async stop(): Promise<void> {
    for (const way of this.ways) way.unblock();
    for (const node of this.nodes.toReversed()) await node.stop();
    for (const way of [...this.ways, ...this.#waysToS3]) way.close();
    await this.#s3.close();
    await this.#server.close();
  }
}

function at(url: string, hostname: string, { port }: TcpProxy): string {
  return Object.assign(new URL(url), { hostname, port: String(port) }).href;
}
