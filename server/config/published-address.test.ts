import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadConfig } from './config.ts';
import { isPublishedAt, publishedAt } from './published-address.ts';

const of = (environment: Record<string, string>) =>
  loadConfig(
    Object.fromEntries(Object.entries(environment).map(([name, value]) => [`CLOUDLET_${name}`, value])),
  );

test('on loopback published ports have another address than the console', () => {
  const config = of({});
  assert.deepEqual(publishedAt(config), { listen: '127.0.0.2', shown: '127.0.0.2' });
  assert.equal(isPublishedAt(config), false);
  assert.equal(publishedAt(of({ HOST: '127.0.0.2' })).listen, '127.0.0.3');
});

test('elsewhere they are at the host of the console, until they are given a name or an address', () => {
  const [HOST, PUBLIC_URL] = ['0.0.0.0', 'https://cloud.example.org'];
  const cases: [Record<string, string>, string, string | null, boolean][] = [
    [{ HOST }, HOST, null, true],
    [{ HOST, PUBLIC_URL }, HOST, null, true],
    [{ HOST, PUBLIC_URL, PUBLISHED_HOST: 'ports.example.net' }, HOST, 'ports.example.net', false],
    [{ HOST, PUBLIC_URL, PUBLISHED_HOST: 'cloud.example.org' }, HOST, 'cloud.example.org', true],
    [{ HOST, PUBLIC_URL, PUBLISHED_HOST: '192.0.2.7' }, '192.0.2.7', '192.0.2.7', false],
    [{ HOST, PUBLISHED_HOST: '2001:db8::7' }, '2001:db8::7', '[2001:db8::7]', false],
    [{ HOST, PUBLISHED_PORTS: 'off' }, HOST, null, false],
    [{ PUBLISHED_HOST: '127.0.0.1' }, '127.0.0.1', '127.0.0.1', true],
  ];
  for (const [settings, listen, shown, isBeside] of cases) {
    const config = of(settings);
    assert.deepEqual(publishedAt(config), { listen, shown }, JSON.stringify(settings));
    assert.equal(isPublishedAt(config), isBeside, JSON.stringify(settings));
  }
  // A data origin with its own name does not serve ports.
  assert.equal(isPublishedAt(of({ HOST, PUBLIC_URL }), 'data.example.org'), false);
  assert.throws(() => of({ PUBLISHED_HOST: '0.0.0.0' }), /must be a name/);
  assert.throws(() => of({ PUBLISHED_HOST: 'http://x' }), /must be a name/);
});
