import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { notInstalled } from '../../../scripts/installed.ts';
import { isAppError } from '../../platform/errors.ts';
import { testClaim } from '../../testing/own-ground.ts';
import { noOwnNetwork, runInOwnNetwork } from '../../testing/own-network.ts';
import { bridgeRules } from './bridge-rules.ts';
import { GuestBridge } from './guest-bridge.ts';
import { OutboundGuard } from './outbound-guard.ts';
import { outboundRules } from './outbound-rules.ts';
import { parseResolvers, routableResolvers } from './resolvers.ts';

const RULES = {
  letsOut: true,
  uidBase: 600_000_000,
  uidCount: 2 ** 20,
  resolvers: [],
  allowPrivate: false,
  comment: null,
};
const BRIDGE = { uidBase: 600_000_000, network: '10.80.4.9/22', outbound: true, allowPrivate: false };

test('name servers are read as the resolver reads them, IPv4 only, each once', () => {
  const text = '# nameserver 1.1.1.1\nsearch a.test\nnameserver\t10.0.0.53\n nameserver 10.0.0.53 # twice\n';
  assert.deepEqual(parseResolvers(`${text}nameserver fe80::1%eth0\nnameserver 9.9.9.9; drop\n`), [
    '10.0.0.53',
  ]);
});

test("behind a name server of the host's own, those are found that it asks", (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-resolvers-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const list = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const stub = list('stub', 'nameserver 127.0.0.53\noptions edns0\n');
  const real = list('real', 'nameserver 192.0.2.53\nnameserver 192.0.2.54\n');
  const missing = join(folder, 'missing');
  assert.deepEqual(routableResolvers([stub, missing, real]), ['192.0.2.53', '192.0.2.54']);
  assert.deepEqual(routableResolvers([real, stub]), ['192.0.2.53', '192.0.2.54']);
  assert.deepEqual(routableResolvers([stub]), []);
});

test('the rules are for all users of guests and for nobody else', () => {
  const rules = outboundRules(RULES);
  assert.deepEqual(new Set(rules.match(/skuid \S+/g)), new Set(['skuid 600000000-601048575']));
  assert.match(rules, /^table inet cloudlet_600000000\ndelete table inet cloudlet_600000000\n/);
  assert.ok(!rules.includes('dport 53'), 'without a name server nothing is open');
  const withNames = outboundRules({ ...RULES, resolvers: ['10.0.0.53', '9.9.9.9'] });
  assert.match(withNames, /ip daddr \{ 10\.0\.0\.53, 9\.9\.9\.9 \} .* dport 53 accept/);
});

test('where nothing is let out, answers are all there is', () => {
  const rules = outboundRules({ ...RULES, letsOut: false, resolvers: ['9.9.9.9'], allowPrivate: true });
  const guest = /chain guest \{\n([^}]*)\}/
    .exec(rules)?.[1]
    ?.trim()
    .split(/\s*\n\s*/);
  assert.deepEqual(guest, ['ct state established ct direction reply accept', 'drop']);
});

test('private networks are closed unless the operator opens them; this host always is', () => {
  for (const allowPrivate of [false, true]) {
    const rules = outboundRules({ ...RULES, allowPrivate });
    assert.equal(rules.includes('192.168.0.0/16'), !allowPrivate);
    assert.match(rules, /fib daddr type \{ local,[^}]*\} drop/);
    assert.match(rules, /127\.0\.0\.0\/8, 169\.254\.0\.0\/16/);
  }
});

test('without root no guest is let out, and the refusal says what to do', async () => {
  const noUsers = { problem: 'users are shared', fix: 'run Cloudlet as root' };
  const deps = { uidBase: 1000, uidCount: 1, allowPrivate: false, noUsers, claim: testClaim() };
  const guard = new OutboundGuard({ ...deps, letsOut: true });
  await assert.rejects(guard.ensure(), (error: unknown) => {
    assert.ok(isAppError(error, 'engine_unavailable'));
    assert.match(error.hint ?? '', /as root, or set CLOUDLET_VM_OUTBOUND=off/);
    return error === guard.refusal;
  });
  const closed = new OutboundGuard({ ...deps, letsOut: false });
  await closed.close();
  assert.match(closed.refusal?.message ?? '', /can reach every port of this host/);
  assert.equal(closed.refusal?.hint, 'run Cloudlet as root');
});

test('a guest on the bridge is told its network; other addresses are none of it', () => {
  const bridge = new GuestBridge({ ...BRIDGE, claim: testClaim() });
  assert.equal(bridge.gateway, '10.80.4.1');
  const network = bridge.networkOf('10.80.7.9');
  assert.deepEqual([network?.address, network?.gateway], ['10.80.7.9/22', '10.80.4.1']);
  for (const address of ['10.80.4.1', '10.80.8.1', '127.80.0.1']) {
    assert.equal(bridge.networkOf(address), null, address);
  }
});

test('on the bridge each guest has rules of its own, and only some may go out', () => {
  const guest = (at: number, outbound: boolean) => {
    return {
      device: `clt${at}`,
      mac: `52:54:00:00:00:0${at}`,
      address: `10.80.0.${at}`,
      ports: [22],
      outbound,
    };
  };
  const common = { bridge: 'clbr1', resolvers: [], allowPrivate: false, comment: null };
  const rules = bridgeRules({ ...common, guests: [guest(2, true), guest(3, false)] });
  assert.match(rules, /iifname vmap \{ "clt2" : jump from_clt2, "clt3" : jump from_clt3 \}/);
  assert.match(
    rules,
    /chain from_clt3 \{\n {4}ether saddr != 52:54:00:00:00:03 drop\n.* arp saddr ip 10\.80\.0\.3 accept/,
  );
  assert.match(rules, /elements = \{ 10\.80\.0\.2 \}/);
  assert.match(rules, /elements = \{ 10\.80\.0\.2 \. 22, 10\.80\.0\.3 \. 22 \}/);
  assert.ok(!bridgeRules({ ...common, guests: [] }).includes('elements'));
});

test('a process without file descriptors is told that a program of the host cannot be run, and lives on', () => {
  const path = fileURLToPath(new URL('host-tool.ts', import.meta.url));
  const script = `
    import { openSync } from 'node:fs';
    import { ip, nft } from ${JSON.stringify(path)};
    try { for (;;) openSync('/dev/null'); } catch {}
    for (const work of [ip(['link']), nft('')]) await work.catch(({ message }) => console.log(message));`;
  const node = [process.execPath, '--input-type=module-typescript', '-e', script];
  const run = spawnSync('/bin/sh', ['-c', 'ulimit -n 100; exec "$@"', 'sh', ...node], { encoding: 'utf8' });
  assert.equal(run.stdout, 'ip cannot be run (EMFILE)\nnft cannot be run (EMFILE)\n', run.stderr);
});

const BRIDGED = `
import { loadConfig } from ${JSON.stringify(from('../../config/config.ts'))};
import { checkVmNetwork } from ${JSON.stringify(from('../../commands/doctor/doctor-network.ts'))};
import { CloudClaim } from ${JSON.stringify(from('./cloud-claim.ts'))};
import { GuestBridge } from ${JSON.stringify(from('./guest-bridge.ts'))};
const said = await new GuestBridge({ ...${JSON.stringify(BRIDGE)}, claim: new CloudClaim({ cloudId: 'cld-test', uidBase: 1, dataDir: '' }) }).ensure()
  .then(() => ({}), ({ message, hint }) => ({ message, hint }));
const config = loadConfig({ CLOUDLET_VM_NETWORK: 'bridge', CLOUDLET_VM_POOL: '10.80.0.0/16' });
console.log(JSON.stringify({ ...said, doctor: (await checkVmNetwork(config, null))[0] }));`;

/** The output of the bridge and doctor in a container, whose `/proc/sys` becomes read-only after `first`. */
function inContainer(first: string): Record<string, never> {
  const script = `ip link set lo up; ${first}
    mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys && exec "$@"`;
  const node = [process.execPath, '--input-type=module-typescript', '-e', BRIDGED];
  const words = ['--net', '--mount', '--propagation', 'private', 'sh', '-c', script, 'sh', ...node];
  const { stdout, stderr } = spawnSync('unshare', words, { encoding: 'utf8' });
  return JSON.parse(stdout || JSON.stringify({ message: stderr }));
}

const QUIET = '/proc/sys/net/ipv6/conf/default/disable_ipv6';
const noNetworks = cannotMakeBridges();

function cannotMakeBridges(): string | false {
  const missing = notInstalled('nft', 'ip', 'mount', 'perl');
  if (missing) return missing;
  const asked = spawnSync('unshare', [
    '--net',
    '--mount',
    'sh',
    '-c',
    'ip link add dev br0 type bridge && nft list tables',
  ]);
  if (asked.status !== 0) return 'bridges need root and namespaces of networks';
  return existsSync(QUIET) ? false : 'this host has no IPv6';
}

test('where /proc/sys is read-only the bridge says what to do', { skip: noNetworks }, () => {
  const { message, hint, doctor } = inContainer(`echo 0 >${QUIET}`);
  assert.match(
    message ?? '',
    /^virtual machines cannot be attached to the bridge: IPv6 .* \/proc\/sys is read-only here$/,
  );
  assert.match(
    hint ?? '',
    /--sysctl net\.ipv6\.conf\.default\.disable_ipv6=1, or set CLOUDLET_VM_NETWORK=loop/,
  );
  assert.match(JSON.stringify(doctor), /"warn".*\/proc\/sys is read-only: virtual machines cannot start/);
});

test('where /proc/sys is read-only and IPv6 is off the bridge is made', { skip: noNetworks }, () => {
  const { message, doctor } = inContainer(`echo 1 >${QUIET}`);
  assert.equal(message, undefined);
  assert.match(JSON.stringify(doctor), /"ok"/);
});

const LEFT = `
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { CloudClaim } from ${JSON.stringify(from('./cloud-claim.ts'))};
import { removeLeftGuards } from ${JSON.stringify(from('./left-guards.ts'))};
const cloud = (uidBase) => \`
import { CloudClaim } from ${JSON.stringify(from('./cloud-claim.ts'))};
import { GuestBridge } from ${JSON.stringify(from('./guest-bridge.ts'))};
import { OutboundGuard } from ${JSON.stringify(from('./outbound-guard.ts'))};
const claim = new CloudClaim({ cloudId: 'cld-a', uidBase: \${uidBase}, dataDir: '/a' });
const rules = { uidBase: \${uidBase}, allowPrivate: false, claim };
await new OutboundGuard({ ...rules, letsOut: true, uidCount: 10, noUsers: null }).ensure();
const network = '10.8\${uidBase % 10}.0.0/16';
const bridge = new GuestBridge({ ...rules, network, outbound: false });
const guest = { uid: \${uidBase} + 1, mac: '52:54:00:00:00:01', address: '10.80.0.5', outbound: false };
await bridge.plug({ ...guest, ports: [22] });
setInterval(() => {}, 1000);
console.log('up');
\`;
const begin = async (uidBase) => {
  const node = ['--input-type=module-typescript', '-e', cloud(uidBase)];
  const child = spawn(process.execPath, node, { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  return async () => { child.kill('SIGKILL'); await once(child, 'exit'); };
};
const there = () => {
  const links = spawnSync('ip', ['-o', 'link'], { encoding: 'utf8' }).stdout.matchAll(/ (cl(?:br|t)\\d+):/g);
  const tables = spawnSync('nft', ['list', 'tables'], { encoding: 'utf8' }).stdout.matchAll(/table (.*)/g);
  return [...links, ...tables].map(([, name]) => name).sort().join(', ');
};
const sweep = () => removeLeftGuards({ uidBase: 900, uidCount: 10, hasBridge: false, warn: () => {} });
spawnSync('nft', ['add', 'table', 'inet', 'cloudlet_100']);
const kill = [await begin(600), await begin(700)];
await sweep();
console.log('both', there());
await kill[0]();
const guest = spawn('setpriv', ['--reuid', '605', '--clear-groups', 'sleep', '60']);
await once(guest, 'spawn');
for (let uid; uid !== 605; ) uid = (await import('node:fs')).statSync('/proc/' + guest.pid).uid;
await sweep();
console.log('a machine runs on', there());
guest.kill('SIGKILL');
await once(guest, 'exit');
await sweep();
console.log('one', there());
await kill[1]();
await sweep();
console.log('none', there());
process.exit();
`;

test('rules and bridges of a killed cloud go once none of its machines runs, others stay', {
  skip: noOwnNetwork() || noNetworks,
}, () => {
  const { stdout, stderr } = runInOwnNetwork(LEFT);
  const of = (base: number) => [`bridge clbr${base}`, `clbr${base}`, `clt${base + 1}`];
  const inet = (base: number) => [`inet clbr${base}`, `inet cloudlet_${base}`];
  const all = (...bases: number[]) => [...bases.flatMap(of), ...bases.flatMap(inet), 'inet cloudlet_100'];
  const said = stdout.trim().split('\n');
  const expected = { both: all(600, 700), 'a machine runs on': all(600, 700), one: all(700), none: all() };
  const lines = Object.entries(expected).map(([when, names]) => `${when} ${names.sort().join(', ')}`);
  assert.deepEqual(said, lines, stderr);
});

function from(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}
