/** kill -9 while a class is imported: either all are invited, or nobody. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { chooseSeed, randomFrom, rounds } from './load.ts';

const ROUNDS = rounds(5, 100);
const ROWS = 1000;

test('an import that is killed has invited everybody or nobody, as its audit entry says', async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'cloudlet-import-kill-'));
  const seed = chooseSeed();
  t.diagnostic(`FAULTS_SEED=${seed}`);
  const random = randomFrom(seed);
  const cloud = await CloudProcess.start({ dataDir });
  t.after(() => cloud.crash().then(() => rmSync(dataDir, { recursive: true })));
  let expected = 0;
  /** The duration of an import without a kill. */
  let tookMs = 0;
  const found = { all: 0, none: 0 };
  for (let round = 0; round <= ROUNDS; round++) {
    const names = Array.from({ length: ROWS }, (_, i) => `r${round}-${i},r${round}-${i}@example.org`);
    const csv = ['username,email', ...names].join('\n');
    const began = performance.now();
    const asked = new Client(cloud.api, ADMIN_KEY).call('/api/admin/invitations/import', { json: { csv } });
    const answered = asked.then(
      ({ status }) => status,
      () => null,
    );
    // The first one determines the duration.
    if (round === 0) await answered;
    else await sleep(random() * tookMs * 1.2);
    if (round === 0) tookMs = performance.now() - began;
    await cloud.crash();
    const last = await answered;
    await cloud.start();
    const admin = new Client(cloud.api, ADMIN_KEY);
    const { body } = await admin.call('/api/admin/invitations');
    const made = body.length - expected;
    assert.ok(made === 0 || made === ROWS, `${made} of ${ROWS} are invited`);
    if (last === 201) assert.equal(made, ROWS, 'what was answered is there');
    expected += made;
    found[made === 0 ? 'none' : 'all']++;
    const entries = await admin.call('/api/audit?account_id=all&action=adminImportInvitations&outcome=done');
    assert.equal(entries.body.length * ROWS, expected, 'an entry for each, and no other');
  }
  t.diagnostic(`${found.all} imports are there, ${found.none} are not; one took ${Math.round(tookMs)} ms`);
});
