/** An account that floods the login only delays itself: others can log in. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';

const PASSWORD = 'correct horse battery';
/** More than one process may keep waiting. */
const FLOODERS = 120;
const VISITS = 8;

let cloud: CloudProcess;
let username: string;
let email: string;
before(async () => {
  cloud = await CloudProcess.start();
  const client = await CheckedClient.open(cloud.api);
  ({ username } = await client.register());
  email = `${username}@example.org`;
});
after(() => cloud.stop());

interface Outcome {
  readonly status: number;
  readonly retryAfter: string | undefined;
}

/** A login from `localAddress`: every address of 127.0.0.0/8 belongs to this host. */
async function login(name: string, password: string, from: { localAddress: string; agent?: Agent }) {
  const headers = { 'content-type': 'application/json' };
  const sent = request(`${cloud.api}/api/login`, { method: 'POST', headers, ...from });
  sent.end(JSON.stringify({ username: name, password }));
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  for await (const _ of response);
  const outcome: Outcome = {
    status: response.statusCode ?? 0,
    retryAfter: response.headers['retry-after'],
  };
  return outcome;
}

test('a flood of wrong logins is refused with Retry-After, and right ones from elsewhere succeed', async () => {
  const flood: Outcome[] = [];
  let isOver = false;
  const agent = new Agent({ keepAlive: true });
  const flooders = Array.from({ length: FLOODERS }, async (_, i) => {
    while (!isOver) {
      // Separate names, so that the throttling of one name affects no other.
      const name = `nobody-${i}-${flood.length}`;
      flood.push(await login(name, 'wrong password', { localAddress: '127.1.0.1', agent }));
      await sleep(50);
    }
  });
  while (!flood.some(({ status }) => status === 503)) await sleep(20);
  const visits: number[] = [];
  for (let i = 0; i < VISITS; i++) {
    const name = i % 2 === 0 ? username : email;
    visits.push((await login(name, PASSWORD, { localAddress: '127.2.0.1' })).status);
  }
  isOver = true;
  await Promise.all(flooders);
  agent.destroy();
  assert.deepEqual(visits, new Array(VISITS).fill(200));
  for (const { status, retryAfter } of flood) {
    if (status === 401) continue;
    assert.ok(status === 503 || status === 429, `${status}`);
    assert.match(retryAfter ?? '', /^[1-9]\d*$/);
  }
});
