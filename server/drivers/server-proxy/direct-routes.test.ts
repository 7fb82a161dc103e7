import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { testClaim } from '../../testing/own-ground.ts';
import { noOwnNetwork, runInOwnNetwork } from '../../testing/own-network.ts';
import { changeOf, DirectRoutes, tableOf } from './direct-routes.ts';

test('only the routes that differ are changed', () => {
  const from = new Map([
    [1, 11],
    [2, 12],
  ]);
  assert.equal(changeOf('t', from, new Map(from)), '');
  const lines = changeOf('t', from, new Map([...from, [2, 13]]))
    .trim()
    .split('\n');
  assert.deepEqual(lines, [
    'delete element ip t ports { 2 }',
    'delete element ip t routes { 2 : 12 }',
    'delete element ip t servers { 12 }',
    'add element ip t ports { 2 }',
    'add element ip t routes { 2 : 13 }',
    'add element ip t servers { 13 }',
  ]);
});

test('the rules name one table', () => {
  const rules = tableOf({ table: 'mine', routes: new Map([[1, 11]]), uid: 0, comment: 'x' });
  assert.deepEqual(
    new Set(rules.match(/(?:table|element) ip \S+/g)),
    new Set(['table ip mine', 'element ip mine']),
  );
});

test('without root connections go by the proxy, and it says why', async () => {
  const direct = new DirectRoutes({ claim: testClaim(), warn: () => {}, uid: null });
  await direct.begin(1);
  await direct.set(1, 11);
  await direct.close();
  assert.match(direct.problem ?? '', /require root/);
});

/**
 * Two listeners and their servers in a separate network; prints who answers, and the address of the client.
 */
const SCRIPT = `
import { spawnSync } from 'node:child_process';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { ServerProxy } from ${JSON.stringify(from('./server-proxy.ts'))};
import { CloudClaim } from ${JSON.stringify(from('../host-network/cloud-claim.ts'))};
const claimOf = (cloudId) => new CloudClaim({ cloudId, uidBase: 1, dataDir: '/data of "mine"' });
const [FIRST, SECOND, SERVER, OTHER] = [5432, 5433, 24000, 24001];
const nft = (input) => spawnSync('nft', ['-f', '-'], { input }).status;
const listen = (port) => new Promise((resolve) => {
  createServer((client) => {
    const { remoteAddress = '' } = client.on('error', () => {});
    client.on('data', () => client.write(remoteAddress));
  }).listen(port, '127.0.0.1', resolve);
});
const enter = (port, from) => {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from }).on('error', () => {});
  const ask = () => new Promise((resolve) => {
    socket.once('data', (bytes) => resolve(String(bytes) === '127.94.0.1' ? 'proxy' : 'direct'));
    socket.once('close', () => resolve('refused')).write('?');
  });
  return { socket, ask };
};
const ask = async (port, from) => {
  const { socket, ask } = enter(port, from);
  const said = await Promise.race([ask(), sleep(1000, 'waits')]);
  socket.destroy();
  return said;
};
/** Repeats until the answer is right: a route takes effect a little later than the listener. */
const until = async (port, wish) => { while ((await ask(port)) !== wish) await sleep(200); };
const many = async (count, port) => {
  const said = await Promise.all(Array.from({ length: count }, () => ask(port)));
  return said.filter((each) => each === 'direct').length;
};
await listen(SERVER);
await listen(OTHER);
const left = 'table ip cloudlet_databases_0123456789ab { chain a { type nat hook output priority -100; ' +
  'policy accept; ip daddr 127.0.0.1 tcp dport 5432 dnat to 127.0.0.1:9; }; }';
console.log('left', nft(left), await ask(FIRST));
const wanted = new Set();
const proxy = new ServerProxy({ wanted: (listener) => wanted.add(listener), warn: console.log, claim: claimOf('cld-mine') });
const listeners = [['first', FIRST], ['second', SECOND]];
for (const [name, port] of listeners)
  await proxy.open({ name, addresses: ['127.0.0.1'], port, protocol: 'postgresql' });
console.log('asleep', await ask(FIRST), [...wanted]);
await proxy.lead('first', SERVER);
await until(FIRST, 'direct');
console.log('server', await ask(SERVER), await ask(SERVER, '127.94.0.1'), await ask(OTHER));
process.seteuid(1);
console.log('another user', await ask(SERVER, '127.94.0.1'));
process.seteuid(0);
await sleep(5000);
const crowd = await many(200, FIRST);
console.log('crowd', crowd >= 40 && crowd < 80 ? 'bounded' : crowd);
await proxy.lead('second', OTHER);
await until(SECOND, 'direct');
const after = await many(100, FIRST);
console.log('after a change elsewhere', after < 30 ? 'bounded' : after);
await sleep(5000);
const there = enter(FIRST);
console.log('there', await there.ask());
wanted.clear();
await proxy.lead('first', null);
await proxy.lead('second', null);
console.log('leads nowhere', await there.ask(), await ask(FIRST), [...wanted]);
await proxy.lead('first', SERVER);
await until(FIRST, 'direct');
console.log('back', await there.ask());
spawnSync('nft', ['flush', 'ruleset']);
console.log('flushed', await ask(FIRST));
await proxy.lead('second', OTHER);
await until(SECOND, 'direct');
await until(FIRST, 'direct');
console.log('placed again', proxy.directProblem);
await proxy.close();
console.log('closed', spawnSync('nft', ['list', 'tables']).stdout.length);
const warnings = [];
const broken = new ServerProxy({ wanted() {}, warn: (text) => warnings.push(text), claim: claimOf('no name') });
await broken.open({ name: 'first', addresses: ['*'], port: FIRST, protocol: 'postgresql' });
await broken.lead('first', SERVER);
console.log('broken', await ask(FIRST), /^nft: /.test(broken.directProblem), warnings.length);
await broken.close();
process.exit();
`;

test('new connections of this host go straight to a server that is up, within bounds', {
  skip: noOwnNetwork(),
}, () => {
  const { stdout, stderr } = runInOwnNetwork(SCRIPT);
  assert.deepEqual(
    stdout.trim().split('\n'),
    [
      'left 0 refused',
      'nftables: removing the table cloudlet_databases_0123456789ab: no cloud listens on its ports',
      "asleep waits [ 'first' ]",
      'server refused proxy direct',
      'another user refused',
      'crowd bounded',
      'after a change elsewhere bounded',
      'there direct',
      "leads nowhere direct waits [ 'first' ]",
      'back direct',
      'flushed proxy',
      'placed again null',
      'closed 0',
      'broken proxy true 1',
    ],
    stderr,
  );
});

function from(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}
