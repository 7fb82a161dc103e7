import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { FakeClock } from '../../platform/clock.ts';
import { ConnectionSlots, type SlotDeps } from './connection-slots.ts';

function open(given: Partial<SlotDeps> = {}) {
  const clock = new FakeClock();
  const closed: { name: string; wasUsed: boolean }[] = [];
  const names = new Map<Socket, string>();
  const deps = { clock, maxConnections: 100, maxPerAddress: 100, trustedProxies: [], ...given };
  const receiving = new Set<Socket>();
  const slow: Socket[] = [];
  const slots = new ConnectionSlots(deps, {
    close: (socket, { wasUsed }) => closed.push({ name: names.get(socket) ?? '', wasUsed }),
    isReceiving: (socket) => receiving.has(socket),
    slowReader: (of) => {
      const at = slow.findIndex((socket) => of?.has(socket) ?? true);
      return at < 0 ? undefined : slow.splice(at, 1)[0];
    },
    crowding: () => undefined,
  });
  /** A connection from `remoteAddress`, and its outcome. */
  const enter = (remoteAddress: string, name = '') => {
    const socket = { remoteAddress } as Socket;
    names.set(socket, name);
    return { socket, slot: slots.enter(socket) };
  };
  const kind = (remoteAddress: string) => enter(remoteAddress).slot.kind;
  return { slots, clock, closed, enter, kind, receiving, slow };
}

test('an address has its share, whatever the others have; a /64 counts as one address', () => {
  const { kind, slots } = open({ maxPerAddress: 2, maxConnections: 400 });
  for (const address of ['192.0.2.1', '::ffff:192.0.2.1', '2001:db8::1', '2001:db8::2']) {
    assert.equal(kind(address), 'ordinary', address);
  }
  for (const address of ['192.0.2.1', '2001:db8::3']) assert.equal(kind(address), 'reserve', address);
  for (const address of ['192.0.2.2', '2001:db8:0:1::1']) assert.equal(kind(address), 'ordinary', address);
  assert.equal(slots.size, 8);
});

test('a trusted proxy has no share, but the whole has its bound', () => {
  const { kind } = open({
    maxPerAddress: 1,
    maxConnections: 8,
    trustedProxies: ['192.0.2.1', '2001:db8::/32', 'not-an-address'],
    isNode: (address) => address === '192.0.2.77',
  });
  for (const address of ['192.0.2.1', '192.0.2.1', '::ffff:192.0.2.1', '2001:db8:9::1', '2001:db8:9::1']) {
    assert.equal(kind(address), 'ordinary', address);
  }
  for (const address of ['192.0.2.77', '192.0.2.77']) assert.equal(kind(address), 'ordinary', address);
  assert.equal(kind('192.0.2.9'), 'ordinary');
  assert.equal(kind('192.0.2.1'), 'reserve');
});

test('when there is no free slot, what has been idle longest is closed; what is busy is not', () => {
  const { enter, slots, clock, closed } = open({ maxConnections: 3 });
  const [a, b, c] = ['a', 'b', 'c'].map((name) => enter('192.0.2.1', name).socket) as [
    Socket,
    Socket,
    Socket,
  ];
  slots.busy(a);
  slots.busy(b);
  clock.advance(500);
  slots.done(b);
  clock.advance(999);
  assert.equal(enter('192.0.2.2', 'd').slot.kind, 'ordinary');
  assert.deepEqual(closed, [{ name: 'c', wasUsed: false }], 'c was never used, for 1.5 s');
  assert.equal(enter('192.0.2.2').slot.kind, 'reserve', 'b is idle for 0.999 s');
  clock.advance(1);
  assert.equal(enter('192.0.2.2', 'e').slot.kind, 'ordinary');
  assert.deepEqual(closed.at(-1), { name: 'b', wasUsed: true });
  clock.advance(60_000);
  for (const name of ['f', 'g']) assert.equal(enter('192.0.2.2', name).slot.kind, 'ordinary');
  assert.deepEqual(
    closed.slice(2).map(({ name }) => name),
    ['d', 'e'],
  );
  assert.equal(slots.size, 4);
  for (const socket of [a, a, b, c]) slots.leave(socket);
  assert.equal(slots.size, 3);
});

test('an address that has its share frees a slot among its own', () => {
  const { enter, clock, closed } = open({ maxPerAddress: 2 });
  enter('192.0.2.9', 'other');
  enter('192.0.2.1', 'first');
  enter('192.0.2.1', 'second');
  clock.advance(1000);
  assert.equal(enter('192.0.2.1').slot.kind, 'ordinary');
  assert.deepEqual(closed, [{ name: 'first', wasUsed: false }]);
});

test('pipelined requests keep a connection busy until the last is answered', () => {
  const { enter, slots, clock, closed } = open({ maxConnections: 1 });
  const { socket } = enter('192.0.2.1', 'piped');
  slots.busy(socket);
  slots.busy(socket);
  slots.done(socket);
  clock.advance(5000);
  assert.equal(enter('192.0.2.1').slot.kind, 'reserve');
  slots.done(socket);
  clock.advance(5000);
  assert.equal(enter('192.0.2.1').slot.kind, 'ordinary');
  assert.deepEqual(
    closed.map(({ name }) => name),
    ['piped'],
  );
});

test('a reserve is left, of which nobody has more than a quarter and nobody keeps a slot', () => {
  const { enter, kind, slots, clock, closed } = open({ maxConnections: 400 });
  for (let i = 0; i < 400; i++) slots.busy(enter(`10.0.${i % 200}.1`).socket);
  assert.deepEqual([kind('192.0.2.1'), kind('192.0.2.1')], ['reserve', 'reserve']);
  const third = enter('192.0.2.1').slot;
  assert.ok(third.kind === 'none' && /Too many/.test(third.reason));
  const probe = enter('192.0.2.2', 'probe').socket;
  assert.ok(slots.isReserve(probe));
  for (let i = 3; i < 8; i++) assert.equal(kind(`192.0.2.${i}`), 'reserve');
  assert.equal(kind('192.0.2.99'), 'none');
  clock.advance(1000);
  assert.equal(kind('192.0.2.99'), 'reserve');
  assert.equal(closed.length, 1);
  slots.leave(probe);
  assert.ok(!slots.isReserve(probe));
  assert.equal(slots.size, 407);
});

test('where nothing is idle, the address with most connections gives up one that still sends', () => {
  const { enter, slots, clock, closed, receiving, kind } = open({ maxConnections: 4, maxPerAddress: 3 });
  const take = (address: string, name: string, isReceiving: boolean) => {
    const { socket } = enter(address, name);
    slots.busy(socket);
    if (isReceiving) receiving.add(socket);
  };
  take('192.0.2.1', 'answered', false);
  take('192.0.2.1', 'slow', true);
  take('192.0.2.1', 'slower', true);
  take('192.0.2.2', 'other', true);
  clock.advance(2000);
  assert.equal(enter('192.0.2.3', 'new').slot.kind, 'ordinary');
  assert.deepEqual(closed, [{ name: 'slow', wasUsed: false }]);
  assert.equal(kind('192.0.2.3'), 'reserve', 'nobody has more than one beyond what it would have then');
});

test('callers of a trusted proxy get slots of an address that only sends, and the proxy gives up none', () => {
  const proxy = '192.0.2.1';
  const { enter, slots, clock, closed, receiving } = open({ maxConnections: 5, trustedProxies: [proxy] });
  for (const [address, name] of [
    ...['p1', 'p2', 'p3'].map((name) => [proxy, name] as const),
    ...['a1', 'a2'].map((name) => ['10.0.0.9', name] as const),
  ]) {
    const { socket } = enter(address, name);
    slots.busy(socket);
    receiving.add(socket);
  }
  clock.advance(1000);
  assert.equal(enter(proxy).slot.kind, 'ordinary');
  assert.deepEqual(closed, [{ name: 'a1', wasUsed: false }]);
  // No account clearly has more than one now.
  clock.advance(1000);
  const last = enter(proxy);
  slots.busy(last.socket);
  assert.notEqual(closed.at(-1)?.name, 'a2');
});

test('slow readers make room before those who still send, and for their own address alone', () => {
  const { enter, slots, clock, closed, receiving, slow, kind } = open({
    maxConnections: 4,
    maxPerAddress: 3,
  });
  const [sender, ours, theirs] = [
    enter('192.0.2.1', 'sender').socket,
    enter('192.0.2.1', 'ours').socket,
    enter('192.0.2.2', 'theirs').socket,
  ];
  enter('192.0.2.1', 'third');
  for (const { socket } of [{ socket: sender }, { socket: ours }, { socket: theirs }]) slots.busy(socket);
  receiving.add(sender);
  clock.advance(2000);
  slow.push(theirs, ours);
  assert.equal(kind('192.0.2.3'), 'ordinary');
  assert.deepEqual(
    closed.map(({ name }) => name),
    ['third'],
  );
  assert.equal(kind('192.0.2.4'), 'ordinary');
  assert.deepEqual(
    closed.map(({ name }) => name),
    ['third', 'theirs'],
  );
});
