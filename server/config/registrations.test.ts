import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadConfig } from './config.ts';
import { registrationOf, registrationsOf, ungrantedMemoryOf } from './registrations.ts';

test('an address registers few accounts where others reach the cloud; the setting wins', () => {
  const of = (environment: Record<string, string>) => registrationsOf(loadConfig(environment));
  for (const host of ['127.0.0.1', '127.8.9.10', '::1', 'localhost']) {
    assert.equal(of({ CLOUDLET_HOST: host }), 300, host);
  }
  for (const host of ['0.0.0.0', '::', '192.0.2.1', 'cloud.example']) {
    assert.equal(of({ CLOUDLET_HOST: host }), 20, host);
  }
  assert.equal(of({}), 300);
  assert.equal(of({ CLOUDLET_PUBLIC_URL: 'https://cloud.example' }), 20, 'behind a proxy');
  assert.equal(of({ CLOUDLET_PUBLIC_URL: 'http://[::1]:8080' }), 300);
  assert.equal(of({ CLOUDLET_HOST: '0.0.0.0', CLOUDLET_RATE_REGISTRATIONS: '300' }), 300);
  assert.equal(of({ CLOUDLET_RATE_REGISTRATIONS: '4' }), 4);
});

test('accounts without granted credits leave half of the memory where others reach the cloud; the setting wins', () => {
  const of = (environment: Record<string, string>) => ungrantedMemoryOf(loadConfig(environment));
  assert.deepEqual([of({}), of({ CLOUDLET_HOST: '::1' })], [100, 100]);
  assert.deepEqual(
    [of({ CLOUDLET_HOST: '::' }), of({ CLOUDLET_PUBLIC_URL: 'https://cloud.example' })],
    [50, 50],
  );
  assert.equal(of({ CLOUDLET_HOST: '::', CLOUDLET_UNGRANTED_MEMORY_PERCENT: '80' }), 80);
});

test('strangers register only where nobody else reaches the cloud; the setting wins', () => {
  const of = (environment: Record<string, string>) => registrationOf(loadConfig(environment));
  assert.equal(of({}), 'open');
  assert.equal(of({ CLOUDLET_HOST: '0.0.0.0' }), 'invitation');
  assert.equal(of({ CLOUDLET_PUBLIC_URL: 'https://cloud.example' }), 'invitation', 'behind a proxy');
  assert.equal(of({ CLOUDLET_HOST: '0.0.0.0', CLOUDLET_REGISTRATION: 'open' }), 'open');
  for (const policy of ['invitation', 'closed']) assert.equal(of({ CLOUDLET_REGISTRATION: policy }), policy);
});
