import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NOBODY, type Principal } from '../../calls/principal.ts';
import { FakeClock } from '../../platform/clock.ts';
import { isAppError } from '../../platform/errors.ts';
import { ConsoleTickets } from './console-tickets.ts';

const as = (accountId: number): Principal => ({ ...NOBODY, accountId, via: 'key' });
const refused = (error: unknown) => isAppError(error, 'invalid_ticket');
const open = () => {
  const clock = new FakeClock();
  return { clock, tickets: new ConsoleTickets(clock) };
};

test('a ticket stands for who got it, once', () => {
  const { tickets, clock } = open();
  const { ticket, expiresAt } = tickets.issue(as(7), 'vm-a');
  assert.match(ticket, /^[A-Za-z0-9]{43}$/);
  assert.equal(expiresAt, clock.now() + 60_000);
  assert.equal(tickets.redeem(ticket, 'vm-a').accountId, 7);
  assert.throws(() => tickets.redeem(ticket, 'vm-a'), refused);
});

test('for another machine it is refused, and used up', () => {
  const { tickets } = open();
  const { ticket } = tickets.issue(as(7), 'vm-a');
  assert.throws(() => tickets.redeem(ticket, 'vm-b'), refused);
  assert.throws(() => tickets.redeem(ticket, 'vm-a'), refused);
  assert.throws(() => tickets.redeem('', 'vm-a'), refused);
});

test('it ends after 60 s, whatever the wall clock does, and is not kept', () => {
  const { tickets, clock } = open();
  const early = tickets.issue(as(7), 'vm-a').ticket;
  clock.jump(-3_600_000);
  clock.advance(59_999);
  const late = tickets.issue(as(7), 'vm-a').ticket;
  assert.equal(tickets.size, 2);
  clock.advance(1);
  assert.throws(() => tickets.redeem(early, 'vm-a'), refused);
  assert.equal(tickets.size, 1);
  assert.equal(tickets.redeem(late, 'vm-a').accountId, 7);
});

test('an account has at most 100 unused ones, and takes none from another', () => {
  const { tickets } = open();
  const theirs = tickets.issue(as(1), 'vm-a').ticket;
  const ours = Array.from({ length: 150 }, () => tickets.issue(as(2), 'vm-b').ticket);
  assert.equal(new Set(ours).size, 150);
  assert.equal(tickets.size, 101);
  assert.equal(tickets.redeem(theirs, 'vm-a').accountId, 1);
  assert.throws(() => tickets.redeem(ours[49] ?? '', 'vm-b'), refused);
  assert.equal(tickets.redeem(ours[50] ?? '', 'vm-b').accountId, 2);
});
