import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { noOwnNetwork, runInOwnNetwork } from '../../testing/own-network.ts';
import { AddressGuard, addressRules } from './address-guard.ts';

test('a block of addresses is at most 256, and never more than the network', () => {
  const blockOf = (network: string, address: string) => new AddressGuard({ network }).blockOf(address);
  assert.equal(blockOf('127.80.0.0/16', '127.80.3.77'), '127.80.3.0');
  assert.equal(blockOf('127.80.0.64/26', '127.80.0.77'), '127.80.0.64');
});

test('the rules name one table, in which nothing is there that nobody asked for', () => {
  const rules = addressRules({ base: '127.80.3.0', prefix: 24, listenPorts: new Map([[22, 24_000]]) });
  assert.deepEqual(new Set(rules.match(/table \S+ \S+/g)), new Set(['table ip cloudlet_127_80_3_0']));
  assert.match(rules, /ip daddr 127\.80\.3\.0\/24 .* dport map \{ 22 : 24000 \}/);
  assert.ok(!addressRules({ base: '127.80.3.0', prefix: 24, listenPorts: new Map() }).includes('dnat to'));
});

test('without root there are no rules, and machines listen at their own ports', async () => {
  const guard = new AddressGuard({ network: '127.80.0.0/16', isRoot: false });
  assert.equal((await guard.listenPorts('127.80.0.1', [22])).size, 0);
  await guard.ensure();
  await guard.release();
});

/** Programs at every address, a running and a stopped machine; prints who answers. */
const SCRIPT = `
import { spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { connect, createServer } from 'node:net';
import { systemClock } from ${JSON.stringify(from('../../platform/clock.ts'))};
import { LoopbackIngress } from ${JSON.stringify(from('./loopback-ingress.ts'))};
import { AddressGuard } from ${JSON.stringify(from('./address-guard.ts'))};
const PORTS = [22, 80, 443, 8080];
const listen = (says, host, port) => new Promise((resolve, reject) => {
  createServer((client) => client.on('error', () => {}).end(says))
    .on('error', reject).listen({ host, port, exclusive: true }, resolve);
});
const ask = (host, port) => new Promise((resolve) => {
  let text = '';
  connect(port, host).on('data', (bytes) => { text += bytes; }).on('error', ({ code }) => resolve(code))
    .on('end', () => resolve(text)).write('?');
});
const askAll = async (host, ports) =>
  console.log(host, ...(await Promise.all(ports.map((port) => ask(host, port)))));
for (const port of [...PORTS, 3306, 24000]) await listen('program', '0.0.0.0', port);
await listen('guest', '127.96.0.1', 20000);
const left = ['127_80_9_0', '127_80_0_0', '127_80_7_0', '127_90_0_0'];
const tables = left.map((base) => 'table ip cloudlet_' + base + ' {}').join('\\n');
spawnSync('nft', ['-f', '-'], { input: tables });
createSocket('udp4').bind(22022, '127.80.7.0').unref();
const guard = new AddressGuard({ network: '127.80.0.0/16' });
const timings = { retryMs: 10, waitMs: 5000, holdMs: 30, atOnceMs: 50, lingerMs: 500 };
const descriptors = { take: () => true };
const ingress = new LoopbackIngress({ clock: systemClock, descriptors, guard, timings });
await ingress.claim('127.80.0.0');
const exposure = { vmId: 'vm-test', address: '127.80.0.1', guestPorts: PORTS, onSignOfLife() {},
  endpointOf: () => ({ host: '127.96.0.1', port: 20000 }) };
const shut = await ingress.open(exposure);
console.log('shut', shut.length);
await guard.sweep();
const names = () => spawnSync('nft', ['list', 'tables']).stdout.toString().match(/127_\\w+/g)?.sort().join(' ');
console.log('tables', names());
ingress.begin('vm-test');
await askAll('127.80.0.1', [...PORTS, 2222, 3306]);
await askAll('127.80.0.2', [...PORTS, 3306]);
await askAll('127.80.1.1', [22]);
await askAll('127.0.0.1', [22, 3306]);
await listen('later', '0.0.0.0', 2222);
await askAll('127.80.0.1', [2222]);
spawnSync('nft', ['flush', 'ruleset']);
await askAll('127.80.0.1', [22]);
await guard.ensure();
await askAll('127.80.0.1', [22]);
await ingress.close('vm-test');
console.log('late', await listen('late', '0.0.0.0', 24001).catch(({ code }) => code));
await askAll('127.80.0.1', [22, 8080]);
await ingress.closeAll();
console.log('after', await listen('after', '0.0.0.0', 24001).catch(({ code }) => code));
console.log('rules', spawnSync('nft', ['list', 'ruleset']).stdout.toString().includes('cloudlet_'));
process.exit();
`;

test('no program that listens everywhere answers for a machine, or is kept from starting by one', {
  skip: noOwnNetwork(),
}, () => {
  const { stdout, stderr } = runInOwnNetwork(SCRIPT);
  assert.deepEqual(
    stdout.trim().split('\n'),
    [
      'shut 0',
      // Tables of running clouds remain; those of clouds that no longer exist are removed, also of other
      // networks.
      'tables 127_80_0_0 127_80_7_0',
      '127.80.0.1 guest guest guest guest guest ECONNREFUSED',
      '127.80.0.2 ECONNREFUSED ECONNREFUSED ECONNREFUSED ECONNREFUSED ECONNREFUSED',
      '127.80.1.1 program',
      '127.0.0.1 program program',
      '127.80.0.1 guest',
      '127.80.0.1 program',
      '127.80.0.1 guest',
      'late EADDRINUSE',
      '127.80.0.1 ECONNREFUSED ECONNREFUSED',
      'after undefined',
      'rules false',
    ],
    stderr,
  );
});

function from(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}
