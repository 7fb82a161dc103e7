/** The audit log under attack: unusual texts, many concurrent searches, and readers that do not read. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { residentMb } from '../harness/memory.ts';
import { openSocket, parseResponse, sendRaw } from '../harness/raw-http.ts';
import { eventually } from '../harness/waiting.ts';
import { CliUser } from './cli-kit.ts';

/** More bytes than the kernel buffers for a reader, and 300 MiB for all of them. */
const ENTRIES = 8000;
const LANES = 32;
const REASON = 'a reason that is told at length, '.repeat(15);
const AT_ONCE = 50;
const MOST_MB = 200;
/** Escape, the C1 codes that terminals interpret, and characters that reverse the reading direction. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there
const RAW = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/;

let cloud: CloudProcess;
let admin: CheckedClient;
before(async () => {
  const env = { CLOUDLET_RATE_REQUESTS: '10000000', CLOUDLET_RATE_ACCOUNT_FACTOR: '100' };
  cloud = await CloudProcess.start({ env });
  admin = await CheckedClient.open(cloud.api, ADMIN_KEY);
});
after(() => cloud?.stop());

const log = (client: CheckedClient, query: string) => client.expect(200, `/api/audit?${query}`);

test('control characters and turned text stay one entry, and reach no terminal', async () => {
  const { id, api_key } = await admin.as(undefined).register();
  const hostile = '\u001b]0;owned\u0007\u009b31m\u202eevil\r\n2026-01-01 root done';
  const path = `/api/buckets/${encodeURIComponent(hostile)}`;
  await admin.as(api_key).refused(404, 'bucket_not_found', [path, { method: 'DELETE' }]);
  const named = JSON.stringify({ reason: hostile });
  const call = { body: named, headers: { 'content-type': 'application/json' } };
  const suspended = await admin.call(`/api/admin/accounts/${id}/suspend`, { method: 'POST', ...call });
  assert.ok([200, 400].includes(suspended.status), JSON.stringify(suspended.body));
  const query = `account_id=${id}&action=deleteBucket`;
  const [entry] = await eventually('its entry', async () => {
    const found = await log(admin, query);
    return found.length > 0 && found;
  });
  assert.equal(entry.target, hostile);
  const lines = await (await admin.fetch(`/api/audit?${query}&format=jsonl`)).text();
  assert.equal(lines.trimEnd().split('\n').length, 1, lines);
  const chief = new CliUser();
  try {
    await chief.ok(['login', cloud.api, '--key', '-'], { input: ADMIN_KEY });
    const shown = await chief.ok(['audit', 'ls', '--account', String(id)]);
    assert.match(shown, /deleteBucket/);
    assert.doesNotMatch(shown, RAW);
    assert.ok(!/^2026-01-01 root/m.test(shown), shown);
  } finally {
    chief.remove();
  }
});

test('an agent is cut, one of 1 MB is refused, and none begins another header', async () => {
  const { id, api_key } = await admin.as(undefined).register();
  const send = (agent: string) =>
    sendRaw(
      cloud.api,
      Buffer.from(
        `POST /api/buckets HTTP/1.1\r\nHost: ${new URL(cloud.api).host}\r\nX-API-Key: ${api_key}\r\nUser-Agent: ${agent}\r\n` +
          'Content-Type: application/json\r\nContent-Length: 14\r\nConnection: close\r\n\r\n{"name":"abc"}',
        'latin1',
      ),
    );
  assert.equal(parseResponse(await send('x'.repeat(20_000))).status, 431);
  // The connection may end before everything is sent.
  const large = await send('x'.repeat(2 ** 20)).catch(() => '');
  assert.ok(large === '' || parseResponse(large).status === 431, large.slice(0, 200));
  assert.equal(parseResponse(await send('a\u0000b')).status, 400);
  assert.equal(parseResponse(await send('a\u001b[31mb')).status, 400);
  assert.equal(
    parseResponse(await send(`${'\u00e2\u0080\u00ae'.repeat(10)}${'y'.repeat(8000)}`)).status,
    201,
  );
  const [entry, ...others] = await log(admin, `account_id=${id}&action=createBucket`);
  assert.deepEqual(others, []);
  assert.equal(entry.user_agent.length, 200);
});

test('a large log is searched by 50 at once, and read by 50 who pause, while others are served', {
  timeout: 300_000,
}, async () => {
  const { id } = await admin.as(undefined).register();
  const victim = admin.as((await admin.as(undefined).register()).api_key);
  let next = 0;
  const give = async () => {
    while (next++ < ENTRIES) {
      const json = { amount: 1, reason: `${REASON}${next}` };
      const { status } = await admin.call(`/api/admin/accounts/${id}/credits`, { json });
      assert.equal(status, 200);
    }
  };
  await Promise.all(Array.from({ length: LANES }, give));
  const idle = residentMb(cloud) ?? 0;
  let most = idle;
  let isOver = false;
  let served = 0;
  const watch = async () => {
    for (; !isOver; served++) {
      await victim.expect(200, '/api/account?api_key=false');
      most = Math.max(most, residentMb(cloud) ?? 0);
      await sleep(5);
    }
  };
  const watching = watch();

  // Nothing matches: each reads all entries.
  const searches = Array.from({ length: AT_ONCE }, () => log(admin, 'account_id=all&target=none&limit=10'));
  assert.deepEqual(new Set((await Promise.all(searches)).map(({ length }) => length)), new Set([0]));

  const request =
    `GET /api/audit?account_id=${id}&format=jsonl HTTP/1.1\r\nHost: ${new URL(cloud.api).host}\r\n` +
    `X-API-Key: ${ADMIN_KEY}\r\nConnection: close\r\n\r\n`;
  const readers: Socket[] = [];
  for (let i = 0; i < AT_ONCE; i++) {
    const reader = await openSocket(cloud.api);
    readers.push(reader.pause());
    reader.write(request);
  }
  const before = served;
  await eventually('others are served', () => served > before + 20);
  const [patient, ...rest] = readers as [Socket, ...Socket[]];
  for (const reader of rest) reader.destroy();
  const pieces: Buffer[] = [];
  patient.on('data', (piece: Buffer) => pieces.push(piece)).resume();
  await once(patient, 'close');
  const lines =
    Buffer.concat(pieces)
      .toString()
      .match(/"action":"adminAdjustCredits"/g) ?? [];
  assert.equal(lines.length, ENTRIES, 'who pauses gets all of it');
  isOver = true;
  await watching;
  assert.ok(most - idle < MOST_MB, `${idle} MiB have become ${most}`);
  const chain = await admin.expect(200, '/api/admin/audit/verify');
  assert.deepEqual([chain.ok, chain.fault], [true, null]);
});
