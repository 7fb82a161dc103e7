/** Processes that must not share one database: those that keep files in their own directories. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { Cluster, noCluster } from '../harness/cluster.ts';
import { freePort } from '../harness/free-port.ts';
import { emptyMetadata } from '../harness/operator-server.ts';

type Env = Readonly<Record<string, string | undefined>>;

const NODES_NEED_BOTH =
  /CLOUDLET_NODE_URL needs CLOUDLET_METADATA_URL and CLOUDLET_BLOBS_URL: see docs\/growth\.md/;

/** Starts a process on its own directory, which is refused with this text. */
async function assertRefused(env: Env, text: RegExp): Promise<void> {
  await assert.rejects(CloudProcess.start({ env }), (error: Error) => {
    assert.match(error.message, /did not start \(exit [1-9]/);
    assert.match(error.message, text);
    return true;
  });
}

async function nodeUrl(): Promise<Env> {
  const port = String(await freePort());
  return { CLOUDLET_PORT: port, CLOUDLET_NODE_URL: `http://127.0.0.1:${port}` };
}

async function assertWrites(cloud: CloudProcess, name: string): Promise<void> {
  const headers = { 'x-api-key': ADMIN_KEY, 'content-type': 'application/json' };
  const made = { method: 'POST', headers, body: JSON.stringify({ name }) };
  assert.equal((await fetch(`${cloud.api}/api/buckets`, made)).status, 201);
}

describe('a cloud with files on PostgreSQL', { skip: noCluster }, () => {
  let server: Awaited<ReturnType<typeof emptyMetadata>>;
  let cloud: CloudProcess;
  let files: Env;
  before(async () => {
    server = await emptyMetadata();
    files = {
      CLOUDLET_METADATA_URL: server.url,
      CLOUDLET_BLOBS_URL: undefined,
    };
    cloud = await CloudProcess.start({ env: files });
  });
  after(async () => {
    await cloud?.stop();
    await server?.close();
  });

  test('is not joined by another that has files, with or without the setting of nodes', async () => {
    await assertRefused(files, /is in use by the Cloudlet on .+, process \d+, since /);
    await assertRefused({ ...files, ...(await nodeUrl()) }, NODES_NEED_BOTH);
    await assertWrites(cloud, 'goes-on');
  });

  test('does not become a node by the setting alone', async () => {
    await cloud.end();
    await assertRefused(
      { ...files, CLOUDLET_DATA_DIR: cloud.dataDir, ...(await nodeUrl()) },
      NODES_NEED_BOTH,
    );
    await cloud.start();
    await assertWrites(cloud, 'as-before');
  });
});

describe('a cluster', { skip: noCluster }, () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await Cluster.start(1);
  });
  after(() => cluster?.stop());

  test('is joined by nobody that has files', async () => {
    const files = { CLOUDLET_METADATA_URL: cluster.metadataUrl, CLOUDLET_BLOBS_URL: undefined };
    await assertRefused(files, /is in use by the Cloudlet .+: it is a node of a cluster/);
    await assertRefused({ ...files, ...(await nodeUrl()), CLOUDLET_COMPUTE: 'off' }, NODES_NEED_BOTH);
    await assertWrites(cluster.nodes[0] as CloudProcess, 'of-the-cluster');
  });
});
