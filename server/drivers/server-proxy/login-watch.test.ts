import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LoginWatch, noEncryption, type Protocol } from './login-watch.ts';

/** The messages after each piece. */
function said(protocol: Protocol, ...pieces: readonly Buffer[]): string[] {
  const watch = new LoginWatch(protocol);
  return pieces.map((piece) => watch.sees(piece));
}

/** A message of PostgreSQL. */
function message(kind: string, ...numbers: readonly number[]): Buffer {
  const body = Buffer.from(numbers.flatMap((number) => [0, 0, 0, number]));
  return Buffer.concat([Buffer.from(kind), Buffer.of(0, 0, 0, body.length + 4), body]);
}

/** A packet of MariaDB. */
function packet(number: number, ...body: readonly number[]): Buffer {
  return Buffer.of(body.length, 0, 0, number, ...body);
}

test('PostgreSQL: AuthenticationOk is the log-in, however it is cut; other requests are none', () => {
  const asks = Buffer.concat([message('R', 10), message('R', 12, 7)]);
  assert.deepEqual(said('postgresql', asks, message('R', 0)), ['not yet', 'in']);
  const bytes = [...Buffer.concat([asks, message('R', 0)])].map((byte) => Buffer.of(byte));
  assert.equal(said('postgresql', ...bytes).at(-1), 'in');
  assert.equal(said('postgresql', ...bytes).indexOf('in'), bytes.length - 1);
  assert.deepEqual(said('postgresql', message('E', 0)), ['not yet']);
});

test('PostgreSQL: no encryption may come before, and encryption shows nothing', () => {
  assert.deepEqual(said('postgresql', Buffer.from('N'), message('R', 0)), ['not yet', 'in']);
  assert.deepEqual(said('postgresql', Buffer.from('N'), Buffer.from('S')), ['not yet', 'never']);
});

test('MariaDB: the OK after the greeting is the log-in; errors and further questions are none', () => {
  const greeting = packet(0, 10, 49);
  assert.deepEqual(said('mysql', greeting, packet(2, 0xfe, 0), packet(4, 0, 0, 0)), [
    'not yet',
    'not yet',
    'in',
  ]);
  assert.deepEqual(said('mysql', packet(0, 0, 0)), ['not yet']);
  assert.deepEqual(said('mysql', greeting, packet(2, 0xff, 0x15)), ['not yet', 'not yet']);
  const tls = Buffer.concat([Buffer.of(0x16, 3, 3, 0, 122), Buffer.alloc(70_000)]);
  assert.deepEqual(said('mysql', greeting, tls), ['not yet', 'never']);
});

test('a request for encryption is answered, a start-up packet is none', () => {
  assert.deepEqual(noEncryption('postgresql', Buffer.of(0, 0, 0, 8, 4, 210, 22, 47)), Buffer.from('N'));
  assert.deepEqual(noEncryption('postgresql', Buffer.of(0, 0, 0, 8, 4, 210, 22, 48)), Buffer.from('N'));
  assert.equal(noEncryption('postgresql', Buffer.of(0, 0, 0, 9, 0, 3, 0, 0, 0)), null);
  assert.equal(noEncryption('mysql', Buffer.of(0, 0, 0, 8, 4, 210, 22, 47)), null);
});
