import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import { AccountStore } from '../accounts/store.ts';
import { Ages } from '../metadata/ages.ts';
import { Bus } from '../metadata/bus.ts';
import { Alarms } from '../platform/alarms.ts';
import { ALONE } from '../platform/membership.ts';
import { openBillingFixture } from '../testing/billing-fixture.ts';
import { eventually } from '../testing/eventually.ts';
import { billingPart, openBilling } from './part.ts';

for (const isHost of [true, false]) {
  test(`an account that another node suspends: ${isHost ? 'the host stops what it runs' : 'a front node does nothing'}`, async (t) => {
    const { metadata, clock, close } = await openBillingFixture();
    const membership = { ...ALONE, isShared: true, isHost };
    const bus = new Bus();
    const base = {
      metadata,
      bus,
      membership,
      ages: new Ages({ membership, clock }),
      alarms: new Alarms(clock),
    };
    const billing = await openBilling({ clock, log: pino({ level: 'silent' }), builtIn: [], base });
    const stopped: unknown[] = [];
    const stops = {
      stop: async (accountId: number, cause: string) => void stopped.push([accountId, cause]),
      resume: async () => ({ waiting: 0 }),
    };
    const part = billingPart(billing, [stops], {
      graceMs: 1000,
      announce: () => [],
      changeAccount: async () => {},
    });
    t.after(async () => {
      await part.close();
      await close();
    });
    part.start();
    // It starts with a period that is over.
    await part.close();
    await metadata.commit([new AccountStore({ reads: metadata }).setSuspended(1, 'unpaid')]);
    stopped.length = 0;
    bus.receive({ forgets: [{ kind: 'account', id: 1 }], changes: [] });
    if (isHost) await eventually(() => stopped.length > 0);
    await part.close();
    assert.deepEqual(stopped, isHost ? [[1, 'account_suspended']] : []);
  });
}
