/**
 * Every operation that accepts an Idempotency-Key: one effect, and the stored answer is the returned one. At
 * two nodes both calls are sent at once, then again at each.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { CheckedClient, type Entry } from '../harness/checked-client.ts';
import { type Answer, Client } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { Cluster, noCluster } from '../harness/cluster.ts';
import { makeSetupLink } from '../harness/command.ts';
import { MailServer } from '../harness/mail-server.ts';
import { eventually } from '../harness/waiting.ts';
import { ACCOUNT_CASES } from './one-key-accounts.ts';
import { type Asked, callUnder, good, type KeptCases, OneKeyKit, PASSWORD } from './one-key-kit.ts';
import { RESOURCE_CASES } from './one-key-resources.ts';

/** At two nodes. */
const ROUNDS = 2;

const CASES: KeptCases = { ...ACCOUNT_CASES, ...RESOURCE_CASES };

/** Operations with a key that are not tested, with the reason. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  setUp: 'only while there is no administrator, so it has a test of its own',
  rotateMasterKey: 'only while one node runs, so it has a test of its own',
  closeAccount: 'ends the credential, so that nobody can ask again',
  cancelRecoveryPoint: 'only while a point is being made, which here takes milliseconds',
};

/** Operations without a key, by the reason. */
const WITHOUT_KEY: Readonly<Record<string, readonly string[]>> = {
  'its secret is kept nowhere': [
    ...['login', 'createTicket', 'approveLogin', 'redeemLoginCode', 'startDeviceLogin', 'pollDeviceLogin'],
    ...['adminCreateSetupLink', 'adminCreateResetLink', 'showRecoveryKey', 'selectFiles'],
    ...['adminCreateInvitation', 'adminImportInvitations', 'adminRenewInvitation'],
  ],
  'a second call finds what the first has done': [
    ...['logout', 'confirmPassword', 'decideDeviceLogin', 'uploadPart', 'completeUpload', 'cancelOperation'],
    ...['verifyRecoveryPoint', 'drillRecoveryPoint', 'restoreAccount', 'confirmRecoveryKey'],
    ...['checkRecoveryTarget', 'adminDrainNode', 'adminResumeNode', 'adminForgetNode'],
  ],
  'it only reads': ['findDeviceLogin', 'previewBucketLifecycle', 'testAccessKey'],
};

let mails: MailServer;
before(async () => {
  mails = await new MailServer().open();
});
after(() => mails?.close());

const env = () => ({
  CLOUDLET_FETCH_ALLOW: '127.0.0.0/8',
  CLOUDLET_SMTP_URL: mails.url,
  CLOUDLET_MAIL_FROM: 'cloud@example.org',
  CLOUDLET_RATE_REGISTRATIONS: '10000',
  CLOUDLET_IMAGE_MIRROR: 'http://127.0.0.1:9/images',
});

const BUSY = new Set(['idempotency_in_flight', 'point_in_progress']);

const takesKey = ({ operation }: Entry) =>
  operation.parameters.some(({ in: where, name }) => where === 'header' && /idempotency-key/i.test(name));

describe('one key at one cloud', () => {
  let cloud: CloudProcess;
  let kit: OneKeyKit;
  before(async () => {
    cloud = await CloudProcess.start({ env: env() });
    kit = new OneKeyKit([cloud], mails);
    await kit.prepare();
  });
  after(() => cloud?.stop());

  test('every operation that changes something is a case here, or is named with a reason', async () => {
    const { operations } = (await CheckedClient.open(cloud.api)).declaration;
    const named = (entries: readonly Entry[]) => entries.map(({ operation }) => operation.operationId).sort();
    const known = [...Object.keys(CASES), ...Object.keys(LEFT_OUT)].sort();
    assert.deepEqual(named(operations.filter(takesKey)), known);
    const others = operations.filter((entry) => entry.method !== 'GET' && !takesKey(entry));
    assert.deepEqual(named(others), Object.values(WITHOUT_KEY).flat().sort());
  });

  walk(() => kit);

  test('rotateMasterKey', async () => {
    await assertKept(kit.nodes[0], { path: '/api/admin/master-key/rotate' });
  });
});

test('setUp', async () => {
  const cloud = await CloudProcess.start({ env: { CLOUDLET_ADMIN_KEY: '' } });
  try {
    const token = new URL(await makeSetupLink(cloud.dataDir)).searchParams.get('token');
    const json = { token, username: 'ada', email: 'ada@example.org', password: PASSWORD };
    await assertKept(new Client(cloud.api), { path: '/api/setup', json, key: null });
  } finally {
    await cloud.stop();
  }
});

describe('one key at two nodes', { skip: noCluster }, () => {
  let cluster: Cluster;
  let kit: OneKeyKit;
  let database: pg.Client;
  before(async () => {
    cluster = await Cluster.start(2, env());
    kit = new OneKeyKit(cluster.nodes, mails);
    await kit.prepare();
    database = new pg.Client(cluster.metadataUrl);
    await database.connect();
    await database.query(COUNT_KEPT);
  });
  after(async () => {
    await database?.end();
    await cluster?.stop();
  });

  walk(
    () => kit,
    async (key) => {
      const { rows } = await database.query('SELECT count(*) FROM answers_kept WHERE key = $1', [key]);
      return Number(rows[0].count);
    },
  );

  test('every call as an operation: one, with one result', async (t) => {
    const { operations } = (await CheckedClient.open(kit.nodes[0].base)).declaration;
    const mayWait = operations.filter((entry) => takesKey(entry) && '202' in entry.operation.responses);
    const names = mayWait.map(({ operation }) => operation.operationId);
    assert.ok(names.length > 60);
    for (const name of names) {
      const { ask, reads = false, once = false } = CASES[name] ?? {};
      // The cloud still has the first of its kind.
      if (ask === undefined || reads || once) continue;
      const n = `${name.toLowerCase()}-later`;
      const asked = await ask(kit, n);
      // The second call would use a key that has ended.
      if (asked.nextKey !== undefined) continue;
      await t.test(name, async () => {
        const [one, two] = await Promise.all(kit.nodes.map((node) => endOf(node, asked, n)));
        assert.deepEqual(two, one);
        assert.equal(one?.state, 'succeeded', JSON.stringify(one));
        if (asked.effects !== undefined) assert.equal(await asked.effects(), 1);
      });
    }
  });
});

/** The operation once it is complete. */
async function endOf(node: Client, asked: Asked, key: string): Promise<Answer['body']> {
  const { status, body } = await answerOf(node, { ...asked, prefer: 'respond-async' }, key);
  assert.equal(status, 202, `${asked.path}: ${JSON.stringify(body)}`);
  const caller = node.as(asked.key ?? ADMIN_KEY);
  return eventually(`the end of ${asked.path}`, async () => {
    const answer = await caller.call(`/api/operations/${body.operation_id}?wait=60`);
    return answer.body.state === 'running' ? null : answer.body;
  });
}

/** Records each stored answer, also one that a later one replaces. */
const COUNT_KEPT = `
  CREATE TABLE answers_kept (key text);
  CREATE FUNCTION note_kept() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN INSERT INTO answers_kept VALUES (NEW.key); RETURN NULL; END';
  CREATE TRIGGER note_kept AFTER INSERT ON idempotency FOR EACH ROW EXECUTE FUNCTION note_kept()`;

/** `countKept`: the number of answers stored for a key, one after the other. */
function walk(kit: () => OneKeyKit, countKept?: (key: string) => Promise<number>): void {
  for (const [name, kept] of Object.entries(CASES)) {
    const { ask, once = false, replaced } = kept;
    test(name, async () => {
      const rounds = once || countKept === undefined ? 1 : ROUNDS;
      for (let round = 0; round < rounds; round++) {
        // No mail is for both clouds.
        const n = `${name.toLowerCase()}-${countKept === undefined ? 'alone' : round}`;
        const asked = await ask(kit(), n);
        const isKept = kept.reads !== true && asked.refusedWith === undefined;
        const answers = await answersOf(kit(), asked, n);
        for (const answer of answers) assertSame(answer, answers[0] as Answer, { asked, isKept });
        if (isKept) assert.ok(answers.slice(-2).every(isReplay));
        if (asked.effects !== undefined) assert.equal(await asked.effects(), 1);
        if (countKept === undefined) continue;
        const stored = !isKept ? 0 : replaced === undefined ? 1 : 2;
        assert.equal(await countKept(n), stored, 'how often an answer was stored under the key');
      }
    });
  }
}

/** Sent twice, the call has one effect, and one answer. */
async function assertKept(node: Client, asked: Asked): Promise<void> {
  const first = await answerOf(node, asked, 'k');
  const second = await answerOf(node, asked, 'k');
  assertSame(second, first, { asked, isKept: true });
  assert.ok(isReplay(second));
}

/** At both nodes at once, then again at each. */
async function answersOf({ nodes }: OneKeyKit, asked: Asked, key: string): Promise<readonly Answer[]> {
  const [one, two] = nodes;
  const { nextKey } = asked;
  const isTogether = one.base !== two.base && nextKey === undefined;
  const first = isTogether
    ? await Promise.all(nodes.map((node) => answerOf(node, asked, key)))
    : [await answerOf(one, asked, key)];
  const again = nextKey === undefined ? asked : { ...asked, key: nextKey(first[0] as Answer) };
  return [...first, await answerOf(two, again, key), await answerOf(one, again, key)];
}

const isReplay = ({ headers }: Answer) => headers.get('idempotent-replayed') === 'true';

interface Expected {
  readonly asked: Pick<Asked, 'path' | 'refusedWith'>;
  /** Otherwise it is created again each time, with new times and ids. */
  readonly isKept: boolean;
}

function assertSame(answer: Answer, first: Answer, { asked: { path, refusedWith }, isKept }: Expected): void {
  if (refusedWith === undefined) good(answer, path);
  else assert.equal(answer.body.code, refusedWith);
  assert.equal(answer.status, first.status);
  if (isKept) assert.deepEqual(answer.body, first.body);
  else assert.deepEqual(Object.keys(answer.body), Object.keys(first.body));
}

/** Repeated while a node still produces the first answer for the key, or a point, as the API recommends. */
async function answerOf(node: Client, asked: Asked, key: string): Promise<Answer> {
  const { key: credential = ADMIN_KEY, path } = asked;
  for (;;) {
    const answer = await node.as(credential ?? undefined).call(path, callUnder(key, asked));
    if (!BUSY.has(answer.body?.code)) return answer;
    await sleep(20);
  }
}
