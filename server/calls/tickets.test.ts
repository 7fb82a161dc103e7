import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { FakeClock } from '../platform/clock.ts';
import { isAppError } from '../platform/errors.ts';
import { ALONE } from '../platform/membership.ts';
import {
  type AccountFixture,
  openAccountFixture,
  testSealer,
  testTickets,
} from '../testing/account-fixture.ts';
import { NOBODY, type Principal } from './principal.ts';
import { Tickets } from './tickets.ts';

const [A, B] = ['/api/vms/vm-a/console', '/api/vms/vm-b/console'];
const as = (accountId: number): Principal => ({ ...NOBODY, accountId, via: 'session' });
const refused = (error: unknown) => isAppError(error, 'invalid_ticket');
const open = () => {
  const clock = new FakeClock();
  return { clock, tickets: testTickets(clock) };
};

let fixture: AccountFixture;
before(async () => {
  fixture = await openAccountFixture();
});
after(() => fixture.close());

/** Two nodes of one cloud, each with its own memory and monotonic clock. */
function twoNodes() {
  const { metadata } = fixture;
  const sealer = testSealer();
  const node = () => {
    const clock = new FakeClock();
    const membership = { ...ALONE, isShared: true };
    return { clock, tickets: new Tickets({ clock, sealer, metadata, membership }) };
  };
  return [node(), node()] as const;
}

test('a ticket stands for who got it, once', async () => {
  const { tickets, clock } = open();
  const { ticket, expiresAt } = tickets.issue(as(7), A);
  assert.match(ticket, /^[\w-]{100,600}$/);
  assert.equal(expiresAt, clock.now() + 60_000);
  assert.deepEqual(await tickets.redeem(ticket, A), as(7));
  await assert.rejects(tickets.redeem(ticket, A), refused);
  await assert.rejects(tickets.redeem(`${ticket}=`, A), refused, 'another text of the same bytes');
  assert.throws(() => tickets.holderOf(ticket, A), refused);
});

test('a key is named by its id, however long its limits are', async () => {
  const { tickets } = open();
  const bucketLimits = Array.from({ length: 100 }, (_, i) => ({ bucket: `b-${i}`, prefix: 'p'.repeat(500) }));
  const { ticket } = tickets.issue({ ...as(7), via: 'key', credentialId: 'key-7', bucketLimits }, A);
  assert.ok(ticket.length < 600);
  assert.deepEqual(await tickets.redeem(ticket, A), { keyId: 'key-7' });
});

test('for another path it is refused, and used up', async () => {
  const { tickets } = open();
  const { ticket } = tickets.issue(as(7), A);
  await assert.rejects(tickets.redeem(ticket, B), refused);
  await assert.rejects(tickets.redeem(ticket, A), refused);
  for (const text of ['', 'x', 'A'.repeat(300), 'A'.repeat(1e6)])
    await assert.rejects(tickets.redeem(text, A), refused);
  assert.equal(tickets.size, 1, 'what is none of ours is not remembered');
});

test('it ends after 60 s, whatever the wall clock does, and is not kept', async () => {
  const { tickets, clock } = open();
  const early = tickets.issue(as(7), A).ticket;
  clock.jump(-3_600_000);
  clock.advance(59_999);
  const late = tickets.issue(as(7), A).ticket;
  assert.equal(tickets.size, 0);
  clock.advance(1);
  await assert.rejects(tickets.redeem(early, A), refused);
  assert.deepEqual(await tickets.redeem(late, A), as(7));
  assert.equal(tickets.size, 1);
  clock.advance(120_000);
  assert.equal(tickets.size, 0);
});

test('a read may be repeated until the ticket ends; its query counts, in any order', () => {
  const { tickets, clock } = open();
  const { ticket } = tickets.issue(as(7), '/api/x/download?b=2&a=1%202');
  for (const url of [
    `/api/x/download?a=1+2&b=2&ticket=${ticket}`,
    `/api/x/download?ticket=${ticket}&b=2&a=1%202`,
  ])
    assert.deepEqual(tickets.holderOf(ticket, url), as(7));
  for (const url of [
    '/api/x/download',
    '/api/x/download?b=2',
    '/api/y/download?b=2&a=1%202',
    '/api/x/download?a=1%202&b=2&b=3',
  ])
    assert.throws(() => tickets.holderOf(ticket, url), refused, url);
  clock.advance(60_000);
  assert.throws(() => tickets.holderOf(ticket, '/api/x/download?b=2&a=1%202'), refused);
});

test('another node takes it, and it is good once at both', async () => {
  const [first, second] = twoNodes();
  const { ticket } = first.tickets.issue(as(7), A);
  assert.deepEqual(second.tickets.holderOf(ticket, A), as(7));
  const both = [first, second].map(({ tickets }) => tickets.redeem(ticket, A));
  const outcomes = await Promise.allSettled(both);
  assert.deepEqual(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
  for (const { tickets } of [first, second]) await assert.rejects(tickets.redeem(ticket, A), refused);
});

test('at another node it ends by the wall clock, which may be a little off', async () => {
  const [first, second] = twoNodes();
  const { ticket } = first.tickets.issue(as(7), A);
  second.clock.jump(-59_000);
  assert.deepEqual(second.tickets.holderOf(ticket, A), as(7));
  second.clock.jump(-1_000);
  assert.throws(() => second.tickets.holderOf(ticket, A), refused);
  second.clock.jump(120_000);
  assert.throws(() => second.tickets.holderOf(ticket, A), refused);
});
