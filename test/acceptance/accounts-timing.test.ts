/** Neither sign-in nor a forgotten password reveals by timing or response who has an account. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { MailServer } from '../harness/mail-server.ts';

const PEOPLE = 210;
/** Of each: above this, no mail is sent to an address. */
const RESETS = 3;
/** Standard deviations: by chance once in 15,000 runs. */
const MOST = 4;
const PASSWORD = 'correct horse battery';

interface Try {
  readonly path: string;
  readonly json: object;
}

let calls = 0;
/** Sends from a new address: each address may request 60 links in ten minutes. */
async function post({ path, json }: Try) {
  calls++;
  const localAddress = `127.1.${calls >> 8}.${calls & 255}`;
  const headers = { 'content-type': 'application/json' };
  const sent = request(cloud.api + path, { method: 'POST', localAddress, headers, agent: false });
  sent.end(JSON.stringify(json));
  const [response] = await once(sent, 'response');
  const body = JSON.parse(await textOf(response));
  return { status: Number(response.statusCode), headers: Object.keys(response.headers), body };
}

let server: MailServer;
let cloud: CloudProcess;
let anyone: Client;
const known: string[] = [];
before(async () => {
  server = await new MailServer().open();
  const env = {
    CLOUDLET_SMTP_URL: server.url,
    CLOUDLET_MAIL_FROM: 'A cloud <cloud@example.org>',
    CLOUDLET_RATE_REQUESTS: '100000',
    CLOUDLET_RATE_REGISTRATIONS: '1000',
  };
  cloud = await CloudProcess.start({ env });
  anyone = new Client(cloud.api);
  for (let i = 0; i < PEOPLE; i++) known.push(await confirmed(`somebody-${i}`));
});
after(async () => {
  await cloud?.stop();
  await server?.close();
});

/** The address of a new account, confirmed by a link. */
async function confirmed(username: string): Promise<string> {
  const email = `${username}@example.org`;
  const registered = await anyone.call('/api/register', { json: { username, email, password: PASSWORD } });
  assert.equal(registered.status, 201, JSON.stringify(registered.body));
  const { text } = await server.mailTo(email);
  const token = /#token=([\w-]+)/.exec(text)?.[1];
  const { status } = await post({ path: '/api/confirm-email', json: { token } });
  assert.equal(status, 200, text);
  return email;
}

/** The complete answer without the parts that differ in every request. */
function said({ status, headers, body }: Awaited<ReturnType<typeof post>>): string {
  return JSON.stringify([status, { ...body, request_id: '' }, headers]);
}

async function timed(one: Try, answers: Set<string>): Promise<number> {
  const began = performance.now();
  const answer = await post(one);
  const took = performance.now() - began;
  answers.add(said(answer));
  // Deferred work of a request delays no other request.
  await sleep(20);
  return took;
}

const median = (all: readonly number[]) => all.toSorted((a, b) => a - b)[all.length >> 1] ?? 0;

/** The distance of the signed ranks of these differences from chance, in standard deviations (Wilcoxon). */
function signedRanks(differences: readonly number[]): number {
  const count = differences.length;
  const bySize = differences.toSorted((a, b) => Math.abs(a) - Math.abs(b));
  const longer = bySize.reduce((sum, one, index) => (one > 0 ? sum + index + 1 : sum), 0);
  const spread = Math.sqrt((count * (count + 1) * (2 * count + 1)) / 24);
  return (longer - (count * (count + 1)) / 4) / spread;
}

/**
 * Tests pairs of an existing and a missing account, in changing order: in a pair both meet the same load of
 * this host, and by chance each is the slower one equally often.
 */
async function assertTellsNothing(tries: number, make: (email: string) => Try): Promise<string> {
  const took = { known: [] as number[], nobody: [] as number[] };
  const answers = new Set<string>();
  for (let i = 0; i < PEOPLE * tries; i++) {
    const email = known[i % PEOPLE] ?? '';
    const ask = {
      known: () => timed(make(email), answers),
      nobody: () => timed(make(email.replace('somebody', 'anybody')), answers),
    };
    for (const name of i % 2 === 0 ? (['known', 'nobody'] as const) : (['nobody', 'known'] as const))
      took[name].push(await ask[name]());
  }
  const deviations = signedRanks(took.known.map((ms, i) => ms - (took.nobody[i] ?? 0)));
  const medians = `medians ${median(took.known).toFixed(2)} and ${median(took.nobody).toFixed(2)} ms`;
  const told = `who has an account is ${deviations.toFixed(2)} deviations slower; ${medians}`;
  assert.ok(Math.abs(deviations) < MOST, told);
  assert.equal(answers.size, 1, [...answers].join('\n'));
  return told;
}

const signIn = (username: string): Try => ({
  path: '/api/login',
  json: { username, password: 'not the password' },
});

test('a sign-in with a wrong password, by user name', async (t) => {
  t.diagnostic(await assertTellsNothing(1, (email) => signIn(email.split('@')[0] ?? '')));
});

test('a sign-in with a wrong password, by e-mail address', async (t) => {
  t.diagnostic(await assertTellsNothing(1, signIn));
});

test('a forgotten password', async (t) => {
  const path = '/api/reset-password/request';
  t.diagnostic(await assertTellsNothing(RESETS, (email) => ({ path, json: { email } })));
});
