/**
 * Every operation that accepts an Idempotency-Key: one effect, and the stored answer is the returned one.
 * nodes-one-key.test.ts asks two nodes at once.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { CheckedClient, type Entry } from '../harness/checked-client.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { makeSetupLink } from '../harness/command.ts';
import { MailServer } from '../harness/mail-server.ts';
import { OneKeyKit, PASSWORD } from './one-key-kit.ts';
import { assertKept, CASES, envOf, takesKey, walk } from './one-key-walk.ts';

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

describe('one key at one cloud', () => {
  let cloud: CloudProcess;
  let kit: OneKeyKit;
  before(async () => {
    cloud = await CloudProcess.start({ env: envOf(mails.url) });
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
