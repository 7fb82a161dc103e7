import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { TrustedProxies } from './exchange.ts';

const proxies = new TrustedProxies(['10.0.0.0/8', 'fd00::1', 'nonsense']);

function from(remoteAddress: string, headers: Record<string, string> = {}): IncomingMessage {
  return { socket: { remoteAddress }, headers } as unknown as IncomingMessage;
}

test('the address is the last that no trusted proxy has', () => {
  const forwarded = (text: string) => ({ 'x-forwarded-for': text });
  for (const [peer, text, address] of [
    ['192.0.2.1', '', '192.0.2.1'],
    // Any client can send the header.
    ['192.0.2.1', '198.51.100.9', '192.0.2.1'],
    ['10.1.2.3', '198.51.100.9', '198.51.100.9'],
    ['::ffff:10.1.2.3', '198.51.100.9', '198.51.100.9'],
    ['10.1.2.3', '203.0.113.5, 198.51.100.9, 10.9.9.9', '198.51.100.9'],
    ['fd00::1', '2001:db8::7', '2001:db8::7'],
    ['10.1.2.3', 'unknown', '10.1.2.3'],
    ['10.1.2.3', '', '10.1.2.3'],
  ] as const) {
    assert.equal(proxies.addressOf(from(peer, forwarded(text))), address, `${peer} ${text}`);
  }
});

test('only a trusted proxy says that the client spoke TLS', () => {
  const headers = { 'x-forwarded-proto': 'https' };
  assert.equal(proxies.isSecure(from('10.1.2.3', headers)), true);
  assert.equal(proxies.isSecure(from('192.0.2.1', headers)), false);
  assert.equal(proxies.isSecure(from('10.1.2.3', { 'x-forwarded-proto': 'http' })), false);
});
