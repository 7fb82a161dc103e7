/** Resources on the host node of a cluster, requested at a front node. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, describe, test } from 'node:test';
import { createClient } from '@libsql/client';
import { WebSocket } from 'ws';
import { CheckedClient } from '../harness/checked-client.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import { ADMIN_KEY } from '../harness/cloud-process.ts';
import { Cluster, noCluster } from '../harness/cluster.ts';
import { residentMb } from '../harness/memory.ts';
import { eventually } from '../harness/waiting.ts';
import { helloDisk, settled } from './images-kit.ts';
import { openTunnel } from './tunnel-kit.ts';
import { cannotRunGuests, newVm, sshBanner } from './vms-kit.ts';

const ECHO = 9000;
const GUEST = `#!/bin/sh
nc -ll -p ${ECHO} -e cat &
`;
const skip = cannotRunGuests();

describe('a front node', { skip: noCluster }, () => {
  let cluster: Cluster;
  let host: CloudProcess;
  let front: CloudProcess;
  let owner: CheckedClient;
  let admin: CheckedClient;
  let key: string;
  before(async () => {
    cluster = await Cluster.start(2, { CLOUDLET_APPS_DOMAIN: 'apps.example.org' });
    [host, front] = cluster.nodes as [CloudProcess, CloudProcess];
    const anyone = await CheckedClient.open(front.api);
    ({ api_key: key } = await anyone.register());
    [owner, admin] = [anyone.as(key), anyone.as(ADMIN_KEY)];
  });
  after(() => cluster?.stop());

  test('databases of all engines are made and asked through it', async () => {
    for (const engine of ['sqlite', 'postgresql']) {
      const made = await owner.expect(201, '/api/databases', { json: { name: `of-${engine}`, engine } });
      const query = (statement: string) =>
        owner.expect(200, `/api/databases/${made.database_id}/query`, {
          json: { statement, read_only: false },
        });
      await query('CREATE TABLE notes (text TEXT)');
      await query("INSERT INTO notes VALUES ('through the front')");
      const { rows } = await query('SELECT text FROM notes');
      assert.deepEqual(rows, [['through the front']]);
      const seen = await owner.expect(200, `/api/databases/${made.database_id}`);
      assert.equal(seen.state, 'ready');
      assert.notEqual(seen.connection.port, 0);
    }
  });

  test('drivers of SQLite databases reach them by its data origin', async () => {
    const made = await owner.expect(201, '/api/databases', { json: { name: 'by-driver' } });
    const { pathname } = new URL(made.connection.uri);
    const authToken = made.connection.password;
    for (const url of [`${front.data}${pathname}`, `${front.data.replace('http', 'ws')}${pathname}`]) {
      const driver = createClient({ url, authToken });
      const { rows } = await driver.execute('SELECT 1 + 1 AS two');
      assert.equal(rows[0]?.two, 2, url);
      driver.close();
    }
    const wrong = await fetch(`${front.data}${pathname}/v2/pipeline`, {
      method: 'POST',
      headers: { authorization: 'Bearer wrong' },
      body: '{}',
    });
    assert.equal(wrong.status, 401);
    assert.equal(wrong.headers.get('access-control-allow-origin'), '*');
  });

  test('an answer names the request as its own, and the limits that were taken here', async () => {
    const answer = await owner.fetch('/api/databases/db-00000000000000000000000000/log');
    assert.equal(answer.status, 404);
    const { request_id, code } = (await answer.json()) as { request_id: string; code: string };
    assert.equal(code, 'database_not_found');
    assert.equal(answer.headers.get('x-request-id'), request_id);
    assert.notEqual(answer.headers.get('x-ratelimit-remaining'), null);
  });

  test('an image is streamed through it, in memory that stays flat', async () => {
    const before = residentMb(front);
    const disk = Buffer.alloc(256 * 2 ** 20);
    helloDisk().copy(disk);
    disk.writeUInt32LE(7, disk.length - 4);
    const body = new FormData();
    body.set('file', new Blob([disk]), 'disk.img');
    const { image_id } = await admin.expect(201, '/api/admin/images/upload', { body });
    const image = await settled(admin, image_id);
    assert.equal(image?.state, 'ready');
    const grown = (residentMb(front) ?? 0) - (before ?? 0);
    assert.ok(grown < 100, `${grown} MiB more`);
  });

  test('machines are started, typed to and tunnelled to through it', { skip }, async () => {
    const vm = await newVm(owner, { user_data: GUEST });
    const { ip_address } = await owner.expect(200, `${vm}/start`, { method: 'POST' });
    await sshBanner(ip_address);
    const seen = await owner.expect(200, vm);
    assert.equal(seen.state, 'running');
    assert.ok(seen.ports.some(({ open }: { open: boolean }) => open));
    assert.equal((await owner.expect(200, '/api/vms')).length, 1);
    await assertConsole(vm);
    await eventually('an echo through a tunnel', async () => {
      const tunnel = await openTunnel(front.api, { path: `${vm}/tunnel?port=${ECHO}`, key });
      tunnel.socket.send(Buffer.from('?'));
      await eventually('an end', () => tunnel.text !== '' || tunnel.code !== 0);
      tunnel.socket.terminate();
      return tunnel.text === '?';
    });
  });

  test('consoles and tunnels through it close with a code when the host stops, hangs or is killed', {
    skip,
  }, async (t) => {
    const [{ vm_id: id }] = await owner.expect(200, '/api/vms');
    const vm = `/api/vms/${id}`;
    const ways: Readonly<Record<string, readonly [code: number, way: () => Promise<unknown>]>> = {
      stops: [1001, () => host.end()],
      'is killed': [1012, () => host.crash()],
      // Ended by the front after ten seconds.
      hangs: [1012, async () => process.kill(host.pid, 'SIGSTOP')],
    };
    for (const [name, [code, way]] of Object.entries(ways)) {
      const tunnel = await openTunnel(front.api, { path: `${vm}/tunnel?port=${ECHO}`, key });
      const { ticket } = await owner.expect(201, `${vm}/console-tickets`, { method: 'POST' });
      const url = `${front.api.replace('http', 'ws')}${vm}/console?ticket=${ticket}`;
      const console = new WebSocket(url);
      await once(console, 'open');
      const closed = once(console, 'close');
      tunnel.socket.send(Buffer.from('?'));
      await eventually('an echo', () => tunnel.text === '?');
      const began = performance.now();
      await way();
      const [ofConsole] = await closed;
      await eventually('the end of the tunnel', () => tunnel.code !== 0);
      t.diagnostic(`${name}: ${Math.round(performance.now() - began)} ms`);
      assert.deepEqual([ofConsole, tunnel.code], [code, code], name);
      if (name === 'hangs') {
        process.kill(host.pid, 'SIGCONT');
        assert.equal(await host.ended(), 75);
      }
      await host.start();
      await eventually('the machine behind the front', async () => {
        const { status, body } = await owner.call(vm);
        return status === 200 && body.ports.some(({ open }: { open: boolean }) => open);
      });
    }
  });

  async function assertConsole(vm: string): Promise<void> {
    const { ticket } = await owner.expect(201, `${vm}/console-tickets`, { method: 'POST' });
    const socket = new WebSocket(`${front.api.replace('http', 'ws')}${vm}/console?ticket=${ticket}`);
    let text = '';
    socket.on('message', (data) => {
      text += String(data);
    });
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
    socket.send(Buffer.from('\necho $((40 + 2))-typed\n'));
    await eventually('the answer of the console', () => text.includes('42-typed'));
    socket.close();
  }

  test('while the host is away storage and lists go on, and its calls say so', { skip }, async () => {
    const [vm] = await owner.expect(200, '/api/vms');
    assert.equal(vm.state, 'running');
    await host.crash();
    await owner.expect(201, '/api/buckets', { json: { name: 'without-host' } });
    const [seen] = await owner.expect(200, '/api/vms');
    assert.equal(seen.state, 'running');
    assert.equal((await owner.expect(200, '/api/databases')).length, 3);
    for (const path of [`/api/vms/${vm.vm_id}/stop`, `/api/vms/${vm.vm_id}/console-tickets`]) {
      const refused = await owner.call(path, { method: 'POST' });
      assert.deepEqual([refused.status, refused.body.code], [503, 'host_unreachable'], path);
      assert.equal(refused.headers.get('retry-after'), '5');
    }
    await host.start();
    const again = await eventually('the host behind the front', async () => {
      const { status, body } = await owner.call(`/api/vms/${vm.vm_id}`);
      return status === 200 && body.ports.some(({ open }: { open: boolean }) => open) ? body : null;
    });
    assert.equal(again.started_at, vm.started_at, 'the machine lived on');
    await owner.expect(200, `/api/vms/${vm.vm_id}/stop?mode=force`, { method: 'POST' });
  });
});
