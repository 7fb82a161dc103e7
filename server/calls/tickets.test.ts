import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../platform/clock.ts';
import { isAppError } from '../platform/errors.ts';
import { NOBODY, type Principal } from './principal.ts';
import { Tickets } from './tickets.ts';

const [A, B] = ['/api/vms/vm-a/console', '/api/vms/vm-b/console'];
const as = (accountId: number): Principal => ({ ...NOBODY, accountId, via: 'key' });
const refused = (error: unknown) => isAppError(error, 'invalid_ticket');
const open = () => {
  const clock = new FakeClock();
  return { clock, tickets: new Tickets(clock) };
};

test('a ticket stands for who got it, once', () => {
  const { tickets, clock } = open();
  const { ticket, expiresAt } = tickets.issue(as(7), A);
  assert.match(ticket, /^[A-Za-z0-9]{43}$/);
  assert.equal(expiresAt, clock.now() + 60_000);
  assert.equal(tickets.redeem(ticket, A).accountId, 7);
  assert.throws(() => tickets.redeem(ticket, A), refused);
});

test('for another path it is refused, and used up', () => {
  const { tickets } = open();
  const { ticket } = tickets.issue(as(7), A);
  assert.throws(() => tickets.redeem(ticket, B), refused);
  assert.throws(() => tickets.redeem(ticket, A), refused);
  assert.throws(() => tickets.redeem('', A), refused);
});

test('it ends after 60 s, whatever the wall clock does, and is not kept', () => {
  const { tickets, clock } = open();
  const early = tickets.issue(as(7), A).ticket;
  clock.jump(-3_600_000);
  clock.advance(59_999);
  const late = tickets.issue(as(7), A).ticket;
  assert.equal(tickets.size, 2);
  clock.advance(1);
  assert.throws(() => tickets.redeem(early, A), refused);
  assert.equal(tickets.size, 1);
  assert.equal(tickets.redeem(late, A).accountId, 7);
});

test('an account has at most 100 unused ones, and takes none from another', () => {
  const { tickets } = open();
  const theirs = tickets.issue(as(1), A).ticket;
  const ours = Array.from({ length: 150 }, () => tickets.issue(as(2), B).ticket);
  assert.equal(new Set(ours).size, 150);
  assert.equal(tickets.size, 101);
  assert.equal(tickets.redeem(theirs, A).accountId, 1);
  assert.throws(() => tickets.redeem(ours[49] ?? '', B), refused);
  assert.equal(tickets.redeem(ours[50] ?? '', B).accountId, 2);
});

test('a read may be repeated until the ticket ends; its query counts, in any order', () => {
  const { tickets, clock } = open();
  const { ticket } = tickets.issue(as(7), '/api/x/download?b=2&a=1%202');
  for (const url of [
    `/api/x/download?a=1+2&b=2&ticket=${ticket}`,
    `/api/x/download?ticket=${ticket}&b=2&a=1%202`,
  ])
    assert.equal(tickets.holderOf(ticket, url).accountId, 7);
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
