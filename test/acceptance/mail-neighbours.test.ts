/**
 * A mail server that hangs, refuses, lies or is down costs nobody anything but the mail itself: sign-ins,
 * uploads and requests for links go on, and so does the mail of others.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { HOSTILE } from '../harness/hostile-mail.ts';
import { MailServer, type RudeServer, rudeServer } from '../harness/mail-server.ts';
import { eventually } from '../harness/waiting.ts';
import { FAKED_CLOCK, noFakedClock } from './faked-clock.ts';

const PASSWORD = 'correct horse battery';
const ATTACKERS = 3;
/** Fewer than attempts that may run at once. */
const HANGING = 12;
/** Longer than the pause before a second and a third attempt, shorter than the life of a link. */
const LATER = '+20m';

let good: MailServer;
/** The operator's server; it passes connections on to the good one, or is hostile. */
let server: RudeServer;
let serve: (socket: Socket) => void;
let cloud: CloudProcess;
let folder: string;
let clock: string;
let anyone: CheckedClient;

function passOn(socket: Socket): void {
  const onward = connect(good.port, '127.0.0.1');
  onward.on('error', () => socket.destroy()).on('close', () => socket.destroy());
  socket.on('close', () => onward.destroy());
  socket.pipe(onward).pipe(socket);
}

before(async () => {
  good = await new MailServer().open();
  serve = passOn;
  server = await rudeServer((socket) => serve(socket));
  const env = {
    CLOUDLET_SMTP_URL: server.url,
    CLOUDLET_MAIL_FROM: 'cloud@example.org',
    CLOUDLET_REGISTRATION: 'open',
    CLOUDLET_RATE_REGISTRATIONS: '10000',
    CLOUDLET_RATE_REQUESTS: '100000',
  };
  folder = mkdtempSync(join(tmpdir(), 'cloudlet-mail-clock-'));
  clock = join(folder, 'clock');
  writeFileSync(clock, '+0');
  const faked = noFakedClock ? {} : { ...FAKED_CLOCK, FAKETIME_TIMESTAMP_FILE: clock };
  cloud = await CloudProcess.start({ env: { ...env, ...faked } });
  anyone = await CheckedClient.open(cloud.api, undefined);
});
after(async () => {
  await cloud?.stop();
  await server?.close();
  await good?.close();
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  serve = passOn;
  good.hangs = () => false;
});

interface Person {
  readonly username: string;
  readonly email: string;
  readonly client: CheckedClient;
}

let made = 0;
async function register(kind: string): Promise<Person> {
  const username = `${kind}-${++made}`;
  const email = `${username}@${kind}.example`;
  const { api_key } = await anyone.expect(201, '/api/register', {
    json: { username, email, password: PASSWORD },
  });
  return { username, email, client: anyone.as(api_key) };
}

/** Somebody with a confirmed address and a bucket. */
async function victim(): Promise<Person> {
  const person = await register('victim');
  const { text } = await good.mailTo(person.email);
  const token = /#token=([\w-]+)/.exec(text)?.[1];
  await anyone.expect(200, '/api/confirm-email', { json: { token } });
  await person.client.expect(201, '/api/buckets', { json: { name: person.username } });
  return person;
}

/** Everything but mail. */
async function worksOn({ username, email, client }: Person): Promise<void> {
  await anyone.expect(200, '/api/login', { json: { username, password: PASSWORD } });
  const content = randomBytes(100_000);
  const form = new FormData();
  form.set('name', 'homework');
  form.set('file', new Blob([content]), 'homework');
  const { object_id: id } = await client.expect(200, `/api/buckets/${username}/upload`, { body: form });
  const answer = await client.fetch(`/api/storage/${id}/download`);
  assert.ok(content.equals(Buffer.from(await answer.arrayBuffer())));
  await anyone.expect(200, '/api/reset-password/request', { json: { email } });
}

const linksFor = ({ email }: Person) =>
  good.received.filter(({ to, subject }) => to.includes(email) && subject.startsWith('A new password'));

/** Ends attempts that would go on for up to a minute. */
async function restart(): Promise<void> {
  await cloud.crash();
  await cloud.start();
  anyone = await CheckedClient.open(cloud.api, undefined);
}

test('whatever the mail server does, only mail waits, and arrives once', { skip: noFakedClock }, async () => {
  const victims: Person[] = [];
  const behaviours = Object.entries(HOSTILE).filter(([, { query }]) => query === undefined);
  for (const [what, hostile] of behaviours) {
    const person = await victim();
    victims.push(person);
    const connections = server.connections();
    serve = hostile.serve;
    // Each registration sends a mail.
    await Promise.all(Array.from({ length: ATTACKERS }, () => register('attacker')));
    await eventually(`mail is under way to a server that ${what}`, () => server.connections() > connections);
    await worksOn(person);
    assert.deepEqual(linksFor(person), [], what);
    serve = passOn;
  }
  const person = await victim();
  victims.push(person);
  await server.close();
  await register('attacker');
  await worksOn(person);
  server = await rudeServer((socket) => serve(socket), server.port);
  writeFileSync(clock, LATER);
  await restart();
  await eventually('all mail arrives', () => victims.every((one) => linksFor(one).length > 0));
  for (const one of victims) assert.equal(linksFor(one).length, 1, one.username);
});

test('while the server hangs at the mail of some, that of others arrives', async () => {
  const person = await victim();
  good.hangs = (address) => address.endsWith('@hanging.example');
  await Promise.all(Array.from({ length: HANGING }, () => register('hanging')));
  await eventually('all of them hang', () => good.hanging === HANGING);
  await worksOn(person);
  await eventually('the link arrives', () => linksFor(person).length === 1);
  assert.equal(good.hanging, HANGING, 'they still hang');
});
