/**
 * Mail servers that lie, flood, respond slowly or disconnect: the mail waits, and arrives once with the next
 * one.
 */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { HOSTILE } from '../../test/harness/hostile-mail.ts';
import { MailServer, rudeServer } from '../../test/harness/mail-server.ts';
import { type AccountFixture, openAccountFixture } from '../testing/account-fixture.ts';
import { openMailFixture } from '../testing/mail-fixture.ts';
import { MAIL_ALARM } from './mail-queue.ts';

const HOUR_MS = 3_600_000;
/** Longer than the first pause after a failure. */
const PAUSE_MS = 6000;
const LIMITS = { silenceMs: 300, totalMs: 1000 };
/** Among ours; each server may only be asked for the one mail that is due. */
const PEOPLE = 3;

let fixture: AccountFixture;
let good: MailServer;
before(async () => {
  fixture = await openAccountFixture();
  good = await new MailServer().open();
});
after(async () => {
  await good.close();
  await fixture.close();
});
beforeEach(() => {
  good.received.length = 0;
});

for (const [what, { serve, query = '' }] of Object.entries(HOSTILE)) {
  test(`a server that ${what}`, async () => {
    const hostile = await rudeServer(serve);
    const mail = openMailFixture({ ...fixture, url: hostile.url + query, ...LIMITS });
    for (let accountId = 1; accountId <= PEOPLE; accountId++) {
      const to = `person-${accountId}@example.org`;
      const text = { kind: 'test', subject: 'Hello', text: 'Hello\n', lifeMs: HOUR_MS };
      await fixture.metadata.commit(mail.outbox.mail({ ...text, accountId, to }));
    }
    mail.queue.start();
    await mail.queue.whenIdle();
    assert.equal(hostile.connections(), PEOPLE, 'one attempt for each mail, and no other before its pause');
    const alarms = mail.alarms.list();
    assert.deepEqual(
      alarms.map(({ code }) => code),
      [MAIL_ALARM],
    );
    const waiting = (await mail.list()).slice(0, PEOPLE);
    for (const { state, tries, reason } of waiting) {
      assert.deepEqual([state, tries], ['pending', 1]);
      assert.ok((reason ?? '').length <= 300, 'however much it said');
    }
    assert.deepEqual(mail.reports, []);
    await mail.queue.close();
    await hostile.close();

    fixture.clock.advance(PAUSE_MS);
    const next = openMailFixture({ ...fixture, url: good.url });
    next.queue.start();
    await next.queue.whenIdle();
    await next.queue.close();
    const ids = (rows: readonly string[]) => rows.toSorted();
    assert.deepEqual(
      ids(good.received.map(({ messageId }) => messageId)),
      ids(waiting.map(({ id }) => `<${id}@example.org>`)),
    );
    assert.ok((await next.list()).slice(0, PEOPLE).every(({ state }) => state === 'sent'));
  });
}
