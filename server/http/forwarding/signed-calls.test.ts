import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { FakeClock } from '../../platform/clock.ts';
import { FORWARDED_HEADER, type PassedCall, SeenNumbers, SignedCalls } from './signed-calls.ts';

const SECRET = Buffer.alloc(32, 7);
const CALL: PassedCall = {
  origin: 'api',
  address: '192.0.2.7',
  requestId: 'req-1',
  isOperator: false,
  host: 'cloud.example.org',
  isSecure: true,
};

const membersOf = (runId: string, isHost: boolean, live = ['front', 'host']) => ({
  runId,
  isHost,
  isGone: (other: string) => !live.includes(other),
});
const clock = new FakeClock(1e12);
const openCalls = (membership: ReturnType<typeof membersOf>, secret = SECRET) =>
  new SignedCalls({ secret, membership, clock });
const front = () => openCalls(membersOf('front', false));
const host = (live?: string[]) => openCalls(membersOf('host', true, live));

function request(value: unknown, { method = 'POST', url = '/api/vms?x=1' } = {}): IncomingMessage {
  const socket = { remoteAddress: '10.0.0.3' };
  return { method, url, socket, headers: { [FORWARDED_HEADER]: value } } as unknown as IncomingMessage;
}
const signed = (from = front(), to = 'host') => from.sign({ method: 'POST', url: '/api/vms?x=1' }, CALL, to);

test('the host knows who called, by a header that only a node can write', () => {
  const call = host().of(request(signed()));
  assert.equal(call?.refusal, null);
  assert.deepEqual([call?.address, call?.requestId, call?.origin], ['192.0.2.7', 'req-1', 'api']);
  assert.equal(host().of({ headers: {} } as IncomingMessage), undefined);
  const at = host();
  at.of(request(`${signed()}x`));
  assert.ok(!at.isNode('10.0.0.3'), 'nobody yet');
  at.of(request(signed()));
  assert.ok(at.isNode('10.0.0.3'));
  assert.ok(!at.isNode('10.0.0.4'));
});

test('what a client writes there is passed over', () => {
  const good = signed();
  const [text = '', signature = ''] = good.split('.');
  const operator = Buffer.from(JSON.stringify({ ...CALL, isOperator: true, from: 'front', to: 'host' }));
  const other = openCalls(membersOf('front', false), Buffer.alloc(32, 8));
  for (const value of [
    '',
    'x',
    `${text}.`,
    text,
    `${operator.toString('base64url')}.${signature}`,
    `${text}.${signature.slice(0, -2)}AA`,
    signed(other),
    [good, good],
  ]) {
    assert.equal(host().of(request(value)), undefined, String(value));
  }
  assert.equal(host().of(request(good, { method: 'GET' })), undefined, 'another method');
  assert.equal(host().of(request(good, { url: '/api/vms?x=2' })), undefined, 'another path');
});

test('a header counts once, and is read as often as is wanted', () => {
  const at = host();
  const value = signed();
  const first = request(value);
  assert.equal(at.of(first)?.refusal, null);
  assert.equal(at.of(first)?.refusal, null);
  assert.equal(at.of(request(value))?.refusal?.code, 'host_unreachable');
});

test('it is for one process, from one that lives, and never goes on from there', () => {
  assert.equal(host().of(request(signed(front(), 'host-before')))?.refusal?.code, 'host_unreachable');
  const otherFront = openCalls(membersOf('host', false));
  assert.equal(otherFront.of(request(signed()))?.refusal?.code, 'host_unreachable');
});

test('a node that has just come is believed before it is listed, for ten seconds; one that has gone never', () => {
  const live: string[] = [];
  const sender = front();
  const codeAt = (at: SignedCalls) => at.of(request(signed(sender)))?.refusal?.code;
  const never = host(live);
  assert.equal(codeAt(never), undefined);
  clock.advance(9999);
  assert.equal(codeAt(never), undefined);
  clock.advance(1);
  assert.equal(codeAt(never), 'host_unreachable', 'never listed');
  assert.equal(codeAt(never), 'host_unreachable');
  const at = host(live);
  live.push('front');
  assert.equal(codeAt(at), undefined);
  live.pop();
  assert.equal(codeAt(at), 'host_unreachable', 'gone');
});

test('numbers may overtake each other by a window, and each is taken once', () => {
  const seen = new SeenNumbers();
  assert.ok(seen.take(5));
  assert.ok(seen.take(3));
  assert.ok(!seen.take(5));
  assert.ok(!seen.take(3));
  assert.ok(seen.take(10_004));
  assert.ok(!seen.take(4), 'too far behind');
  assert.ok(!seen.take(5));
  assert.ok(seen.take(6));
  assert.ok(seen.take(1_000_000));
  assert.ok(!seen.take(10_004));
  assert.ok(seen.take(999_999));
});
