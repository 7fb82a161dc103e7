/** The headers of every response, the cloud's own pages, and text that must not be in its log. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CheckedClient } from '../harness/checked-client.ts';
import { sessionOf } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';

const cloud = await CloudProcess.start({ env: { CLOUDLET_LOG_LEVEL: 'debug' } });
after(() => cloud.stop());
const client = await CheckedClient.open(cloud.api);
const admin = client.as(ADMIN_KEY);

describe('every response', () => {
  const answers: [number, string, RequestInit][] = [
    [200, '/healthz', {}],
    [200, '/api/docs', {}],
    [401, '/api/account', {}],
    [404, '/nothing', {}],
    [405, '/healthz', { method: 'DELETE' }],
    [400, '/api/register', { method: 'POST', body: '{', headers: { 'content-type': 'application/json' } }],
  ];
  for (const [status, path, init] of answers) {
    test(`${init.method ?? 'GET'} ${path} → ${status} is guarded and named`, async () => {
      const origin = { origin: 'https://elsewhere.example', 'x-request-id': 'req-mine' };
      const given = { ...init, headers: { ...init.headers, ...origin } };
      const { status: actual, headers } = await fetch(cloud.api + path, given);
      assert.equal(actual, status);
      assert.match(headers.get('x-request-id') ?? '', /^req-[0-9a-z]{26}$/);
      const policy = headers.get('content-security-policy') ?? '';
      // The console shows the API reference in a frame.
      const framers = path === '/api/docs' ? "'self'" : "'none'";
      for (const rule of ["object-src 'none'", "base-uri 'none'", `frame-ancestors ${framers}`])
        assert.ok(policy.includes(rule), `${rule} in ${policy}`);
      assert.doesNotMatch(policy, /script-src[^;]*'unsafe-inline'/);
      assert.equal(headers.get('x-content-type-options'), 'nosniff');
      assert.equal(headers.get('referrer-policy'), 'no-referrer');
      assert.equal(headers.get('cross-origin-opener-policy'), 'same-origin');
      assert.equal(headers.get('access-control-allow-origin'), null);
      assert.equal(headers.get('access-control-allow-credentials'), null);
      assert.equal(headers.get('x-powered-by'), null);
    });
  }

  test('has its own request id', async () => {
    const ids = new Set<string | null>();
    for (let i = 0; i < 20; i++) ids.add((await fetch(`${cloud.api}/healthz`)).headers.get('x-request-id'));
    assert.equal(ids.size, 20);
  });
});

test('the docs page explains every error, and loads from and links to this cloud alone', async () => {
  const page = await (await fetch(`${cloud.api}/api/docs`)).text();
  const rows = [...page.matchAll(/<tr id="error-(\w+)">(.*?)<\/tr>/g)];
  assert.ok(rows.length > 60);
  for (const [, code = '', row = ''] of rows) {
    const cells = row.split('<td>').map((cell) => cell.replace(/<[^>]+>/g, ''));
    assert.equal(cells.length, 5, code);
    for (const cell of cells.slice(3)) assert.ok(cell.length > 8 && !cell.includes('`'), `${code}: ${cell}`);
  }
  const { body } = await client.call('/api/account');
  assert.ok(page.includes(`id="${body.type.split('#')[1]}"`), 'the type of a problem leads to its row');
  assert.doesNotMatch(page, /<(?:img|iframe|object|embed)\b|<link (?!rel="icon")|<script\s/);
  assert.doesNotMatch(page, /(?:src|href|action|data-library)="(?!#|\/)/);
  assert.doesNotMatch(page, /@import|url\(|https?:/);
});

test('/metrics is Prometheus text that counts what happens', async () => {
  const read = async () => {
    const response = await fetch(`${cloud.api}/metrics`);
    assert.match(response.headers.get('content-type') ?? '', /^text\/plain/);
    const text = await response.text();
    assert.ok(text.endsWith('\n'));
    const samples = new Map<string, number>();
    for (const line of text.trimEnd().split('\n')) {
      if (/^# (?:HELP|TYPE) [a-zA-Z_:][\w:]* \S/.test(line)) continue;
      const sample = /^([a-zA-Z_:][\w:]*(?:\{(?:[a-zA-Z_]\w*="(?:[^"\\]|\\.)*",?)+\})?) (\S+)$/.exec(line);
      assert.ok(sample, line);
      assert.ok(!samples.has(sample[1] ?? ''), `${sample[1]} twice`);
      const value = sample[2] === '+Inf' ? Number.POSITIVE_INFINITY : Number(sample[2]);
      assert.ok(!Number.isNaN(value), line);
      samples.set(sample[1] ?? '', value);
    }
    return samples;
  };
  const total = (samples: Map<string, number>) =>
    [...samples].filter(([name]) => name.includes('getHealth')).reduce((sum, [, value]) => sum + value, 0);
  const before = total(await read());
  for (let i = 0; i < 10; i++) await fetch(`${cloud.api}/healthz`);
  const after = await read();
  assert.ok(total(after) >= before + 10);
  for (const name of ['commits', 'batches', 'batch_seconds']) {
    assert.ok((after.get(`cloudlet_metadata_${name}_total`) ?? 0) > 0, name);
  }
  const positive = [
    ...['process_cpu_seconds_total', 'process_resident_memory_bytes', 'process_start_time_seconds'],
    ...['process_open_fds', 'cloudlet_disk_free_bytes', 'cloudlet_disk_size_bytes'],
    ...['cloudlet_host_memory_available_bytes', 'cloudlet_database_engine_up{engine="sqlite"}'],
  ];
  for (const name of positive) assert.ok((after.get(name) ?? 0) > 0, name);
  const none = ['storage_buckets', 'storage_objects', 'storage_bytes', 'alarms', 'failed_sign_ins_total'];
  for (const name of none) assert.equal(after.get(`cloudlet_${name}`), 0, name);
  const build = [...after.keys()].find((name) => name.startsWith('cloudlet_build_info'));
  assert.match(build ?? '', /version="\d+\.\d+\.\d+",node="\d+\.[\d.]+",metadata="\w+",storage="\w+"/);
  // Values of a new, healthy cloud, which must not trigger an alert.
  for (const [name, value] of after) if (/_up\b|key_taken/.test(name)) assert.equal(value, 1, name);
});

test('S3 requests are counted apart from REST, by operation, and logged as those of REST', async () => {
  const { status, headers } = await fetch(`${cloud.data}/no-such-bucket/a.txt?secret=1`);
  assert.equal(status, 404);
  const text = await (await fetch(`${cloud.api}/metrics`)).text();
  const series = /^cloudlet_http_requests_total\{route="s3GetObject",protocol="s3",status="404"\} 1$/m;
  assert.match(text, series);
  const id = headers.get('x-amz-request-id') ?? 'none';
  const isLogged = () => cloud.output.split('\n').find((line) => line.includes(`"request_id":"${id}"`));
  const line = JSON.parse(await eventually('the request is logged', isLogged));
  const { method, path, status: logged } = line;
  assert.deepEqual([method, path, logged, line.msg], ['GET', '/no-such-bucket/a.txt', 404, 'request']);
  for (const name of ['seconds', 'account', 'address']) assert.ok(name in line, name);
});

describe('the system status', () => {
  test('needs no key and takes one', async () => {
    for (const caller of [client, admin]) {
      const { metrics, status } = await caller.expect(200, '/api/system/status');
      assert.equal(status, 'ok');
      for (const name of ['cpu', 'memory', 'disk']) {
        assert.equal(typeof metrics[name], 'number', name);
        assert.ok(metrics[name] >= 0 && metrics[name] <= 100, `${name} ${metrics[name]}`);
      }
    }
  });

  test('a cookie alone, as browsers send it for a link, is nobody; a wrong key is told', async () => {
    const ask = (headers: Record<string, string>) => fetch(`${cloud.api}/api/system/status`, { headers });
    for (const cookie of ['cloudlet_session=none', `cloudlet_session=${'x'.repeat(43)}`]) {
      assert.equal((await ask({ cookie })).status, 200, cookie);
      assert.equal((await ask({ cookie, 'sec-fetch-site': 'cross-site' })).status, 200, cookie);
    }
    assert.equal((await ask({ 'x-api-key': 'clk_none' })).status, 401);
  });

  test('cpu is measured: it is high while all processors are busy', async () => {
    const busy = Array.from({ length: 2 * availableParallelism() }, () =>
      spawn(process.execPath, ['-e', 'for (;;) {}'], { stdio: 'ignore' }),
    );
    try {
      const seen: number[] = [];
      for (const end = performance.now() + 20_000; performance.now() < end; await sleep(500)) {
        seen.push((await client.expect(200, '/api/system/status')).metrics.cpu);
        if ((seen.at(-1) ?? 0) > 80) break;
      }
      assert.ok(Math.max(...seen) > 80, `cpu ${seen.join()}`);
    } finally {
      for (const child of busy) child.kill('SIGKILL');
    }
  });

  test('health and readiness answer without a key', async () => {
    assert.deepEqual(await client.expect(200, '/healthz'), { status: 'ok' });
    assert.deepEqual(await client.expect(200, '/readyz'), { status: 'ok' });
  });
});

test('the log at its most talkative holds no key, password, cookie or signature', async () => {
  const password = 'a-password-that-is-nowhere-else';
  const account = await client.expect(201, '/api/register', {
    json: { username: 'logged', email: 'logged@example.org', password },
  });
  const user = client.as(account.api_key);
  const session = sessionOf(await client.call('/api/login', { json: { username: 'logged', password } }));
  await client.expect(200, '/api/account', { headers: session });
  const access = await user.expect(201, '/api/account/access-keys', {
    json: { name: 'k', scopes: ['*'] },
    headers: { 'idempotency-key': 'an-idempotency-key' },
  });
  await user.expect(201, '/api/buckets', { json: { name: 'logged', encryption: true } });
  const { body: object } = await user.upload('logged', 'a.txt', 'x');
  const { cdn_url } = await user.expect(200, `/api/storage/${object.object_id}/cdn-url`);
  assert.equal((await fetch(cdn_url)).status, 200);
  const json = { path: `/api/storage/${object.object_id}/download` };
  const opened = await client.expect(201, '/api/account/tickets', { json, headers: session });
  assert.equal((await fetch(client.base + opened.url)).status, 200);
  await fetch(`${client.base}${opened.url}x`);
  await fetch(`${cdn_url}x`);
  await client.call('/api/login', { json: { username: 'logged', password: `${password}-wrong` } });
  await client.as(`${account.api_key}x`).call('/api/account');
  await client.call(`/api/account?api_key=${account.api_key}`);
  const bad = { body: `{"password":"${password}"`, headers: { 'content-type': 'application/json' } };
  await client.call('/api/register', bad);
  await sleep(500);

  const signature = new URL(cdn_url).searchParams.get('signature') ?? 'none';
  const secrets = {
    password,
    key: account.api_key,
    admin: ADMIN_KEY,
    cookie: session.cookie.split('=')[1] ?? 'none',
    token: session['cloudlet-session'],
    ticket: opened.ticket,
  };
  const more = { access: access.api_key, s3: access.secret_access_key, signature };
  assert.match(cloud.output, /"path":"\/api\/login"/, 'the log is there');
  assert.match(cloud.output, /logged|"account":\d+/);
  for (const [what, secret] of Object.entries({ ...secrets, ...more })) {
    assert.ok(secret.length > 20, what);
    assert.ok(!cloud.output.includes(secret), `${what} is in the log`);
  }
});
