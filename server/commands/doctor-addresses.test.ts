import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { notInstalled } from '../../scripts/installed.ts';
import { loadConfig } from '../config/config.ts';
import type { Finding } from '../platform/finding.ts';
import { noOtherReaders } from '../testing/own-ground.ts';
import { checkVmAddresses } from './doctor/doctor-network.ts';

const HERE = (path: string) => JSON.stringify(fileURLToPath(new URL(path, import.meta.url)));
const ASK = `
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { loadConfig } from ${HERE('../config/config.ts')};
import { checkVmAddresses } from ${HERE('./doctor/doctor-network.ts')};
// A running cloud, and a program that listens at every address.
await once(createSocket('udp4').bind(22022, '127.80.7.0').unref(), 'listening');
await once(createServer().listen(8080, '0.0.0.0').unref(), 'listening');
console.log(JSON.stringify((await checkVmAddresses(loadConfig({})))[0]));`;

/** The output of doctor in its own network, as root or, with `user`, as this user. */
function inNetwork(first: string, user: readonly string[] = []): Finding {
  const node = [process.execPath, '--input-type=module-typescript', '-e', ASK];
  const script = `ip link set lo up; ${first}; exec "$@"`;
  const words = ['--net', 'sh', '-c', script, 'sh', ...user, ...node];
  const { stdout, stderr } = spawnSync('unshare', words, { encoding: 'utf8' });
  return JSON.parse(stdout || JSON.stringify({ detail: stderr }));
}

const cannot =
  spawnSync('unshare', ['--net', 'sh', '-c', 'ip link set lo up && nft list tables']).status !== 0;
const skip =
  notInstalled('nft', 'ip', 'setpriv') || (cannot ? 'needs root and namespaces of networks' : false);
const table = (name: string) => `nft add table ip ${name}`;

test('as root with nftables programs at every address do not answer for machines', { skip }, () => {
  const { level, detail } = inNetwork(table('cloudlet_127_80_7_0'));
  assert.deepEqual(
    [level, detail.startsWith('nftables redirects connections to the machines')],
    ['ok', true],
  );
});

test('rules that a killed Cloudlet left are named', { skip }, () => {
  const { level, detail, fix } = inNetwork(
    `${table('cloudlet_127_80_4_0')}; ${table('cloudlet_127_90_0_0')}`,
  );
  assert.equal(level, 'warn');
  assert.match(
    detail,
    /killed Cloudlet left nftables rules behind \(ip cloudlet_127_80_4_0, ip cloudlet_127_90_0_0\): the addresses of machines are/,
  );
  assert.equal(
    fix,
    'start Cloudlet, or nft delete table ip cloudlet_127_80_4_0 && nft delete table ip cloudlet_127_90_0_0',
  );
});

test('without root it says which ports are closed, and where another program answers', {
  skip: skip || noOtherReaders,
}, () => {
  const nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--inh-caps=-all'];
  const { level, detail, fix } = inNetwork(':', nobody);
  assert.equal(level, 'warn');
  assert.match(detail, /^ports 22, 80, 443 of machines are closed .*; other programs .* use ports 8080/);
  assert.match(detail, /SSH is reachable on port 2222$/);
  assert.match(fix ?? '', /^run Cloudlet as root with nftables/);
});

test('on a bridge the systems of machines answer themselves', async () => {
  const bridge = { CLOUDLET_VM_NETWORK: 'bridge', CLOUDLET_VM_POOL: '10.80.0.0/16' };
  assert.deepEqual(await checkVmAddresses(loadConfig(bridge)), []);
});
