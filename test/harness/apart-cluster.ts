/** Three nodes on separate networks behind Caddy, with the configuration of deploy/. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startCaddyOf } from '../acceptance/proxy-kit.ts';
import type { CloudProcess } from './cloud-process.ts';
import { Cluster } from './cluster.ts';
import { freePort } from './free-port.ts';
import { type NodeNetwork, NodeNetworks } from './node-networks.ts';
import { eventually } from './waiting.ts';

export class ApartCluster {
  readonly cluster: Cluster;
  /** URL of the proxy. */
  readonly url: string;
  /** Address of this host for the nodes. */
  readonly host: string;
  readonly #networks: NodeNetworks;
  readonly #of: readonly NodeNetwork[];
  readonly #caddy: ChildProcess;
  readonly #folder: string;

  private constructor(
    cluster: Cluster,
    rest: { networks: NodeNetworks; of: NodeNetwork[]; port: number } & Caddy,
  ) {
    this.cluster = cluster;
    this.host = rest.networks.host;
    this.url = `http://127.0.0.1:${rest.port}`;
    this.#networks = rest.networks;
    this.#of = rest.of;
    this.#caddy = rest.caddy;
    this.#folder = rest.folder;
  }

  /** Resolves once all nodes answer, and the proxy does. */
  static async start(count: number, more: Readonly<Record<string, string>> = {}): Promise<ApartCluster> {
    const networks = new NodeNetworks();
    const port = await freePort();
    const env = {
      ...more,
      CLOUDLET_FETCH_ALLOW: `127.0.0.0/8,${networks.range}`,
      CLOUDLET_TRUSTED_PROXIES: networks.host,
    };
    const cluster = await Cluster.start(0, env);
    const of: NodeNetwork[] = [];
    try {
      for (let i = 0; i < count; i++) {
        const network = networks.add();
        of.push(network);
        await cluster.add({}, { network });
      }
    } catch (error) {
      await cluster.stop();
      networks.close();
      throw error;
    }
    const folder = mkdtempSync(join(tmpdir(), 'cloudlet-test-'));
    const [data, https, http] = [await freePort(), await freePort(), await freePort()];
    const hosts = (url: 'api' | 'data') => cluster.nodes.map((node) => new URL(node[url]).host).join(' ');
    const nodes = {
      CLOUD_NAME: `http://127.0.0.1:${port}`,
      DATA_NAME: `http://127.0.0.1:${data}`,
      CLOUDLET_API: hosts('api'),
      CLOUDLET_DATA: hosts('data'),
      CLOUDLET_API_PORT: new URL(cluster.nodes[0]?.api ?? '').port,
    };
    const caddy = startCaddyOf('Caddyfile.cluster', { folder, ports: { https, http }, nodes });
    const apart = new ApartCluster(cluster, { networks, of, port, caddy, folder });
    const isReady = () =>
      fetch(`${apart.url}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
    await eventually('Caddy answers', isReady);
    return apart;
  }

  networkOf(node: CloudProcess): NodeNetwork {
    return this.#of[this.cluster.nodes.indexOf(node)] as NodeNetwork;
  }

  async stop(): Promise<void> {
    for (const network of this.#of) network.join();
    if (this.#caddy.exitCode === null) {
      this.#caddy.kill();
      await once(this.#caddy, 'exit');
    }
    rmSync(this.#folder, { recursive: true, force: true });
    await this.cluster.stop();
    this.#networks.close();
  }
}

interface Caddy {
  readonly caddy: ChildProcess;
  readonly folder: string;
}
