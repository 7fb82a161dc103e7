/** The time between a recovery point and the restore is not charged. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { eventually } from '../harness/waiting.ts';
import { assertBooks } from './billing-kit.ts';
import { newDatabase } from './databases-kit.ts';
import { FAKED_CLOCK, noFakedClock } from './faked-clock.ts';
import { LosableCloud } from './recovery-kit.ts';
import { cannotRunGuests, newVm, removeAll } from './vms-kit.ts';

/** Less than a start after a boot believes, and charges. */
const GAP_MINUTES = 90;
/** The charged time is recorded each minute; usage after that is waived in a disaster. */
const UNWRITTEN_HOURS = 1 / 60;
const OBJECT_BYTES = 64 * 2 ** 20;
const ROWS = 'WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 10000)';

let lost: LosableCloud;
before(async () => {
  lost = await LosableCloud.start();
});
after(async () => {
  await removeAll(lost.user);
  await lost.end();
});

/** The usage so far of each resource charged by time: GB-hours and hours. */
async function usage(): Promise<Map<string, number>> {
  const { items } = await lost.user.expect(200, '/api/billing/usage');
  type Item = { meter: string; quantity: number };
  return new Map(items.map(({ meter, quantity }: Item) => [meter, quantity]));
}

/** The amounts in permanent use. */
const LEVELS = new Map([
  // With its name and type.
  ['storage', (OBJECT_BYTES + 100) / 2 ** 30],
  ['vm.disk', 30],
  ['vm.time', 1],
  ['database.storage', 1],
]);

/** The time `minutes` from now. */
const later = (minutes: number) => ({ ...FAKED_CLOCK, FAKETIME: `+${minutes}m` });

/** Loses the cloud and restores it after the gap: all usage must be from that time. */
async function loseFor(minutes: number): Promise<void> {
  const before = await usage();
  const began = performance.now();
  assert.equal((await lost.point()).state, 'complete');
  await lost.lose('latest', later(minutes));
  const after = await usage();
  const hours = (performance.now() - began) / 3_600_000;
  assert.ok(after.size >= before.size && before.has('storage'));
  for (const [meter, quantity] of after) {
    const level = LEVELS.get(meter) ?? 0;
    const most = level * hours;
    const more = quantity - (before.get(meter) ?? 0);
    const forgiven = level * UNWRITTEN_HOURS;
    assert.ok(more >= -forgiven && more <= most, `${meter}: ${more} more, at most ${most} were used`);
  }
  assertBooks(lost.dataDir);
}

test('what lies, and what ran, costs nothing for 90 minutes', { skip: noFakedClock }, async () => {
  const { user, admin } = lost;
  const idle = admin.as((await admin.register()).api_key);
  const { credits } = await idle.expect(200, '/api/account');
  await user.expect(201, '/api/buckets', { json: { name: 'files' } });
  await user.upload('files', 'file', randomBytes(OBJECT_BYTES));
  await newDatabase(user, 'CREATE TABLE t (x)', `INSERT INTO t ${ROWS} SELECT hex(randomblob(1000)) FROM n`);
  const vm = cannotRunGuests() ? undefined : await newVm(user);
  if (vm) await user.expect(200, `${vm}/start`, { method: 'POST' });
  await lost.point();
  await lost.keepKey();
  await loseFor(GAP_MINUTES);
  if (vm)
    await eventually('it is stopped', async () => (await lost.user.expect(200, vm)).state === 'stopped');
  // Again, with a cloud that has recorded the charged time before.
  await lost.startAgain(later(GAP_MINUTES));
  await loseFor(2 * GAP_MINUTES);
  const again = await CheckedClient.open(lost.cloud.api, idle.key);
  assert.equal((await again.expect(200, '/api/account')).credits, credits);
});
