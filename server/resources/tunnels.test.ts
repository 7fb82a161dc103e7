import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { Duplex, PassThrough } from 'node:stream';
import { test } from 'node:test';
import { isAppError } from '../platform/errors.ts';
import { eventually } from '../testing/eventually.ts';
import { Tunnels, type TunnelTarget } from './tunnels.ts';

let now = 0;
const clock = { now: () => now, monotonic: () => now } as never;

/** A target that echoes, and the outcome of its tunnels. */
function echo(id = 'vm-a', accountId = 1) {
  const told: [string, Readonly<Record<string, unknown>>][] = [];
  const seen = { isOpen: true, sentBytes: 0, told };
  const target: TunnelTarget = {
    id,
    accountId,
    dial: async () => new PassThrough(),
    isOpen: async () => seen.isOpen,
    sent: (bytes) => {
      seen.sentBytes += bytes;
    },
    announce: async (what, facts) => void told.push([what, facts]),
  };
  return { target, seen };
}

function channel() {
  const got = { text: '', ends: 0, code: 0 };
  return {
    got,
    write: (bytes: Uint8Array) => {
      got.text += Buffer.from(bytes).toString();
      return undefined;
    },
    send: () => {
      got.ends++;
    },
    close: (code: number) => {
      got.code = code;
    },
  };
}

const open = (max = 1000) =>
  new Tunnels({ clock, idleMs: 1000, max, assertFree: () => {}, onError: () => assert.fail() });

test('bytes and ends go through, and both are written down', async () => {
  const [tunnels, { target, seen }, client] = [open(), echo(), channel()];
  const tunnel = await tunnels.open(target, { port: 22 });
  tunnel.begin(client);
  await tunnel.receive(Buffer.from('hello'), false);
  await tunnel.receive(new Uint8Array(), true);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(client.got, { text: 'hello', ends: 1, code: 1000 });
  assert.equal(seen.sentBytes, 5);
  const end = { port: 22, bytes_in: 5, bytes_out: 5, seconds: 0, tunnels: 1, reason: 'ended' };
  assert.deepEqual(seen.told, [
    ['tunnel_opened', { port: 22 }],
    ['tunnel_closed', end],
  ]);
  assert.equal(tunnels.count, 0);
});

test('a target that ended before its tunnel began is heard', async (t) => {
  const server = createServer({ allowHalfOpen: true }, (socket) => socket.end());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { target } = echo();
  const dial = async () => {
    const socket = connect({ port: (server.address() as AddressInfo).port, allowHalfOpen: true });
    await once(socket, 'connect');
    return socket;
  };
  // A socket ends without a reader when no data came before its end.
  const announce = () => new Promise<void>((resolve) => setTimeout(resolve, 200));
  const client = channel();
  const tunnel = await open().open({ ...target, dial, announce }, {});
  tunnel.begin(client);
  await eventually(() => client.got.ends === 1);
  await tunnel.receive(new Uint8Array(), true);
  await eventually(() => client.got.code === 1000);
});

test('an idle tunnel ends, one through which bytes go does not', async () => {
  const [tunnels, idle, used] = [open(), channel(), channel()];
  (await tunnels.open(echo().target, {})).begin(idle);
  const tunnel = await tunnels.open(echo('vm-b').target, {});
  tunnel.begin(used);
  for (let i = 0; i < 3; i++) {
    now += 600;
    await tunnel.receive(Buffer.from('x'), false);
    await tunnels.check();
  }
  assert.equal(idle.got.code, 4003);
  assert.equal(used.got.code, 0);
});

test('tunnels to what is gone end, others stay', async () => {
  const [tunnels, gone, stays] = [open(), channel(), channel()];
  const { target, seen } = echo('db-a');
  (await tunnels.open(target, {})).begin(gone);
  (await tunnels.open(echo('db-b').target, {})).begin(stays);
  seen.isOpen = false;
  await tunnels.check();
  assert.equal(gone.got.code, 4002);
  assert.equal(stays.got.code, 0);
  assert.equal(seen.told.at(-1)?.[1].reason, 'gone');
});

test('an account has 200 at once and 100 to one target; failures and ends give their place back', async () => {
  const tunnels = open();
  const isFull = (error: unknown) => isAppError(error, 'overloaded');
  const many = [];
  for (let i = 0; i < 100; i++) many.push(await tunnels.open(echo('vm-a').target, {}));
  await assert.rejects(tunnels.open(echo('vm-a').target, {}), isFull);
  for (let i = 0; i < 100; i++) many.push(await tunnels.open(echo('vm-b').target, {}));
  await assert.rejects(tunnels.open(echo('vm-c').target, {}), isFull);
  await tunnels.open(echo('vm-d', 2).target, {});
  many[0]?.end();
  const dead: TunnelTarget = { ...echo('vm-c').target, dial: () => Promise.reject(new Error('dead')) };
  for (let i = 0; i < 3; i++) await assert.rejects(tunnels.open(dead, {}), /dead/);
  await tunnels.open(echo('vm-c').target, {});
});

test('a loop of tunnels writes few events, tells all of them, and takes nothing from another account', async () => {
  const tunnels = open();
  const [attacker, victim] = [echo('vm-a', 1), echo('vm-b', 2)];
  for (let i = 0; i < 1000; i++) {
    const tunnel = await tunnels.open(attacker.target, { port: 22 });
    await tunnel.receive(Buffer.from('x'), false);
    tunnel.end();
  }
  assert.equal(attacker.seen.told.length, 51);
  // Other ports and keys are separate events, until there are too many of them.
  const others = Array.from({ length: 49 }, (_, at) => tunnels.open(attacker.target, { port: 1000 + at }));
  await Promise.all(others);
  const more = tunnels.open(attacker.target, { port: 23 });
  await assert.rejects(more, (error) => isAppError(error, 'overloaded'));
  (await tunnels.open(victim.target, { port: 22 })).end();
  const told = victim.seen.told.map(([what]) => what);
  assert.deepEqual(told, ['tunnel_opened', 'tunnel_closed']);
  (await tunnels.open(attacker.target, { port: 22 })).end();
  await tunnels.check();
  assert.equal(attacker.seen.told.length, 100);
  for (let i = 0; i < 100; i++) {
    now += 2000;
    await tunnels.check();
  }
  const ends = attacker.seen.told.filter(([what]) => what === 'tunnel_closed').map(([, facts]) => facts);
  const sum = (name: string) => ends.reduce((all, facts) => all + Number(facts[name]), 0);
  assert.deepEqual([sum('tunnels'), sum('bytes_in')], [1001 + 49, 1000]);
  (await tunnels.open(attacker.target, { port: 23 })).end();
});

test('ends that wait are bounded by account: whoever opens one port after the other has to let them be told', async () => {
  const tunnels = open();
  const [attacker, victim] = [echo('vm-a', 1), echo('vm-b', 2)];
  let refused = 0;
  for (let port = 1; port <= 1000; port++) {
    now += 1000;
    const tunnel = await tunnels.open(attacker.target, { port }).catch(() => undefined);
    if (tunnel === undefined) refused++;
    tunnel?.end();
    await tunnels.check();
  }
  const count = (what: string) => attacker.seen.told.filter(([each]) => each === what).length;
  const untold = () => count('tunnel_opened') - count('tunnel_closed');
  assert.ok(refused > 0 && untold() <= 300, `${refused} refused, ${untold()} untold`);
  (await tunnels.open(victim.target, { port: 22 })).end();
  for (let i = 0; i < 1000; i++) {
    now += 1000;
    await tunnels.check();
  }
  assert.equal(untold(), 0);
  (await tunnels.open(attacker.target, { port: 22 })).end();
});

test('bytes one by one for a target that does not read are put together, and one promise is waited for', async () => {
  const [tunnels, { target }, client] = [open(), echo(), channel()];
  const deaf = new Duplex({ read() {}, write() {} });
  const tunnel = await tunnels.open({ ...target, dial: async () => deaf }, { port: 22 });
  tunnel.begin(client);
  const waits = new Set<unknown>();
  for (let count = 0; count < 100_000; count++) waits.add(tunnel.receive(Buffer.from('x'), false));
  assert.equal(deaf.writableLength, 1, 'the stream has an object for each write');
  assert.equal(waits.size, 2, 'there is a promise for each frame');
  tunnel.close('gone');
  await Promise.all(waits);
});

test('accounts that hold all tunnels of the cloud give way to others', async () => {
  const tunnels = open(60);
  const clients = [];
  for (const accountId of [1, 2]) {
    for (let count = 0; count < 30; count++) {
      const [{ target }, client] = [echo(`vm-${accountId}`, accountId), channel()];
      (await tunnels.open(target, { port: 22 })).begin(client);
      clients.push(client);
    }
  }
  const [{ target }, client] = [echo('vm-3', 3), channel()];
  (await tunnels.open(target, { port: 22 })).begin(client);
  assert.equal(clients[0]?.got.code, 4004);
  const early = await tunnels.open(target, { port: 22 });
  early.close('gone');
  const late = channel();
  early.begin(late);
  assert.equal(late.got.code, 4002, 'it ended before its upgrade did');
  assert.equal(clients.filter(({ got }) => got.code === 0).length, 58);
  assert.equal(client.got.code, 0);
  assert.equal(tunnels.count, 59);
});
