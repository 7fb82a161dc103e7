/** Starting, refusing to start, and stopping without losing requests in progress. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { notInstalled } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess, NO_OTHER_READERS } from '../harness/cloud-process.ts';
import { runCloudlet } from '../harness/command.ts';
import { openSocket, readToEnd } from '../harness/raw-http.ts';
import { eventually } from '../harness/waiting.ts';

const root = mkdtempSync(join(tmpdir(), 'cloudlet-lifecycle-'));
after(() => rmSync(root, { recursive: true, force: true }));

const directory = (name: string) => join(root, name);

/** A failed start prints one clear line on stderr, and has exit code 1; 2 for an invalid setting. */
async function refusesToStart(env: Record<string, string>, reason: RegExp, exitCode = 1): Promise<void> {
  const defaults = { CLOUDLET_DATA_DIR: directory('refused'), CLOUDLET_PORT: '0', CLOUDLET_DATA_PORT: '0' };
  const { code, stdout, stderr } = await runCloudlet(['start'], { env: { ...defaults, ...env } });
  assert.equal(code, exitCode, stdout + stderr);
  assert.match(stderr, /^cloudlet: [^\n]+\n$/);
  assert.match(stderr, reason);
  assert.doesNotMatch(stdout, /Ready/);
}

/** Status of /readyz (0: no answer), and whether the data port accepts a connection. */
async function readiness(api: number, data: number): Promise<{ status: number; hasData: boolean }> {
  const status = await fetch(`http://localhost:${api}/readyz`).then(
    (answer) => answer.status,
    () => 0,
  );
  const socket = connect(data, 'localhost');
  const hasData = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  return { status, hasData };
}

test('a cloud is ready once both ports listen', { skip: notInstalled('strace') }, async () => {
  const ports = [createServer(), createServer()].map((server) => server.listen(0, 'localhost'));
  await Promise.all(ports.map((server) => once(server, 'listening')));
  const [api = 0, data = 0] = ports.map((server) => (server.address() as AddressInfo).port);
  for (const server of ports) server.close();
  // A port listens once its host name is resolved, which takes a second each time.
  const slow = ['-e', 'trace=openat', '-e', 'inject=openat:delay_enter=1000000', '-P', '/etc/hosts'];
  let isOver = false;
  const started = CloudProcess.start({
    env: { CLOUDLET_HOST: 'localhost', CLOUDLET_PORT: String(api), CLOUDLET_DATA_PORT: String(data) },
    wrapper: ['strace', '-f', '-qq', '-o', '/dev/null', '--seccomp-bpf', ...slow],
  }).finally(() => {
    isOver = true;
  });
  const seen: { status: number; hasData: boolean }[] = [];
  while (!isOver) {
    seen.push(await readiness(api, data));
    await sleep(20);
  }
  const cloud = await started;
  try {
    assert.ok(
      seen.some(({ status, hasData }) => status === 503 && !hasData),
      'the API was asked before data listened',
    );
    const early = seen.filter(({ status, hasData }) => status === 200 && !hasData);
    assert.deepEqual(early, [], 'it said that it is ready before the data port listened');
    assert.deepEqual(await readiness(api, data), { status: 200, hasData: true });
  } finally {
    await cloud.stop();
  }
});

describe('a start is refused', () => {
  test('when a port is taken', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const port = String((server.address() as AddressInfo).port);
    try {
      await refusesToStart({ CLOUDLET_PORT: port }, /Port \d+ .* in use.*CLOUDLET_PORT/);
      await refusesToStart({ CLOUDLET_DATA_PORT: port }, /Port \d+ .* in use.*CLOUDLET_DATA_PORT/);
    } finally {
      server.close();
    }
  });

  test('when a file lies where the data directory should be', async () => {
    writeFileSync(directory('file'), '');
    await refusesToStart({ CLOUDLET_DATA_DIR: directory('file') }, /is a file.*CLOUDLET_DATA_DIR/);
    await refusesToStart({ CLOUDLET_DATA_DIR: directory('file/below') }, /is a file/);
  });

  test(
    'when nothing can be made where the data directory should be',
    {
      skip: process.platform !== 'linux',
    },
    () => refusesToStart({ CLOUDLET_DATA_DIR: '/proc/no/such/place' }, /not writable.*CLOUDLET_DATA_DIR/),
  );

  const isRoot = process.getuid?.() === 0;
  test('when the data directory belongs to somebody else', {
    skip: isRoot && NO_OTHER_READERS,
  }, async () => {
    const dataDir = directory('readonly');
    mkdirSync(dataDir, { mode: 0o755 });
    chmodSync(root, 0o755);
    chmodSync(dataDir, 0o555);
    const env = { CLOUDLET_DATA_DIR: dataDir, CLOUDLET_PORT: '0', CLOUDLET_DATA_PORT: '0' };
    const identity = isRoot ? { uid: 65534, gid: 65534 } : {};
    const { code, stderr } = await runCloudlet(['start'], { env, ...identity });
    assert.equal(code, 1, stderr);
    const why = isRoot ? 'belongs to another user' : 'is not writable';
    assert.match(stderr, new RegExp(`^cloudlet: The data directory \\S+ ${why} [^\\n]+\\n$`));
  });

  // The valid values of each setting are in server/config/config.test.ts.
  test('for settings that are unknown or invalid', async () => {
    await refusesToStart({ CLOUDLET_PROT: '80' }, /unknown setting CLOUDLET_PROT .*CLOUDLET_PORT\?/, 2);
    await refusesToStart({ CLOUDLET_PORT: '9000', CLOUDLET_DATA_PORT: '9000' }, /are both 9000/, 2);
    await refusesToStart({ CLOUDLET_HOST: 'no-such-host.invalid' }, /CLOUDLET_HOST: .*no-such-host\.invalid/);
    await refusesToStart({ CLOUDLET_HOST: '192.0.2.1' }, /192\.0\.2\.1 is not an address of this host/);
    await refusesToStart({ CLOUDLET_PORT: '80a' }, /CLOUDLET_PORT.*whole number/, 2);
    await refusesToStart(
      { CLOUDLET_PASSWORD_BLOCKLIST: '/no/such/file' },
      /CLOUDLET_PASSWORD_BLOCKLIST: .*ENOENT/,
    );
  });

  test('but not for what Kubernetes sets for a Service named cloudlet, which it names', async () => {
    const links = { CLOUDLET_SERVICE_HOST: '10.96.0.7', CLOUDLET_PORT_8080_TCP: 'tcp://10.96.0.7:8080' };
    const cloud = await CloudProcess.start({ env: links });
    await cloud.stop();
    assert.match(
      cloud.output,
      /^cloudlet: .*Kubernetes.* ignored: CLOUDLET_\w+ and 1 more; set enableServiceLinks: false/m,
    );
  });

  test('on a data directory that another process has, which goes on', async () => {
    const cloud = await CloudProcess.start({ dataDir: directory('shared') });
    try {
      await refusesToStart({ CLOUDLET_DATA_DIR: cloud.dataDir }, /another|in use|running/i);
      assert.equal((await fetch(`${cloud.api}/readyz`)).status, 200);
    } finally {
      await cloud.stop();
    }
  });

  test('on a data directory of a newer version', async () => {
    const dataDir = directory('newer');
    await (await CloudProcess.start({ dataDir })).stop();
    const database = new Database(join(dataDir, 'metadata.db'));
    database.prepare("INSERT INTO migrations VALUES (9999, 'future', 'x', 0)").run();
    database.close();
    await refusesToStart({ CLOUDLET_DATA_DIR: dataDir }, /schema version 9999/);
  });

  test('when the master key is missing, damaged or open to others', async () => {
    const dataDir = directory('keyless');
    await (await CloudProcess.start({ dataDir })).stop();
    const path = join(dataDir, 'master.key');
    const key = readFileSync(path);
    chmodSync(path, 0o644);
    await refusesToStart({ CLOUDLET_DATA_DIR: dataDir }, /master\.key.*chmod 600/);
    chmodSync(path, 0o600);
    writeFileSync(path, key.subarray(0, 20));
    await refusesToStart({ CLOUDLET_DATA_DIR: dataDir }, /master\.key.*backup/);
    rmSync(path);
    await refusesToStart({ CLOUDLET_DATA_DIR: dataDir }, /master\.key is missing/);
  });
});

test('a second start finds everything, and a taken control socket is no obstacle after a crash', async () => {
  const cloud = await CloudProcess.start({ dataDir: directory('again') });
  try {
    const user = await new Client(cloud.api).newUser();
    await user.call('/api/buckets', { json: { name: 'kept' } });
    await cloud.crash();
    await cloud.start();
    assert.match(cloud.output, /^Ready in \d+\.\d\d s/m);
    const later = new Client(cloud.api, user.key);
    assert.equal((await later.call('/api/buckets/kept')).status, 200);
  } finally {
    assert.equal(await cloud.stop(), 0);
  }
});

test('after SIGTERM a client that gets problems is told that its connection ends', async () => {
  const cloud = await CloudProcess.start({ dataDir: directory('told') });
  const socket = await openSocket(cloud.api);
  const head = `POST /api/buckets HTTP/1.1\r\nHost: localhost\r\nX-API-Key: ${ADMIN_KEY}\r\n`;
  socket.write(`${head}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{`);
  const isServed = () =>
    fetch(`${cloud.api}/healthz`, { headers: { connection: 'close' } }).then(
      () => true,
      () => false,
    );
  assert.ok(await isServed(), 'what came before was read');
  const stopped = cloud.stop();
  while (await isServed()) await sleep(20);
  socket.write(`}${'GET /api/nothing HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(3)}`);
  const text = await readToEnd(socket);
  assert.match(text, /^HTTP\/1\.1 400 /);
  const problems = text.split('HTTP/1.1 404 ').slice(1);
  assert.equal(problems.length, 1, text);
  assert.match(problems[0] ?? '', /\r\nconnection: close\r\n/i);
  assert.equal(await stopped, 0);
});

test('SIGTERM lets an upload of 20 MiB finish, takes no new connection, and exits with 0', async () => {
  const cloud = await CloudProcess.start({ dataDir: directory('graceful') });
  const admin = new Client(cloud.api, ADMIN_KEY);
  assert.equal((await admin.call('/api/buckets', { json: { name: 'late' } })).status, 201);
  const bytes = Buffer.alloc(20 * 2 ** 20, 'cloudlet');
  const head = '--b\r\nContent-Disposition: form-data; name="file"; filename="late.bin"\r\n\r\n';
  const kept = new Agent({ keepAlive: true });
  const upload = request(`${cloud.api}/api/buckets/late/upload`, {
    method: 'POST',
    headers: { 'x-api-key': ADMIN_KEY, 'content-type': 'multipart/form-data; boundary=b' },
    agent: kept,
  });
  const answered = once(upload, 'response');
  upload.write(head);
  // More than the sockets hold: the cloud continues once this is read.
  await new Promise((resolve) => upload.write(bytes.subarray(0, 10 * 2 ** 20), resolve));
  const stopped = cloud.stop();
  await eventually('it takes no new connection', () =>
    fetch(`${cloud.api}/healthz`).then(
      () => false,
      () => true,
    ),
  );
  upload.write(bytes.subarray(10 * 2 ** 20));
  upload.end('\r\n--b--\r\n');
  const [response] = await answered;
  const body = JSON.parse(Buffer.concat(await response.toArray()).toString());
  assert.equal(response.statusCode, 200, JSON.stringify(body));
  // Its client keeps the connection open, which delays no other.
  assert.equal(await Promise.race([stopped, sleep(4000, 'still waiting', { ref: false })]), 0);
  kept.destroy();

  const again = await CloudProcess.start({ dataDir: cloud.dataDir });
  try {
    assert.ok(bytes.equals(await new Client(again.api, ADMIN_KEY).download(body.object_id)));
  } finally {
    await again.stop();
  }
});
