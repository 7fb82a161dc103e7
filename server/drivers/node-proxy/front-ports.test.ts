import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { freePort } from '../../../test/harness/free-port.ts';
import { systemClock } from '../../platform/clock.ts';
import type { ToldPorts } from '../../platform/membership.ts';
import { networkPlace } from '../offered-ports.ts';
import { FrontPorts } from './front-ports.ts';

const AT = '127.0.0.41';

/** A front of a host that answers with the port and the client; `told` can be changed. */
async function openFront(t: TestContext, place = 'elsewhere') {
  const port = await freePort();
  const host = createServer().listen(0, '127.0.0.1');
  await once(host, 'listening');
  const raised = new Map<string, string>();
  const matched: (number | undefined)[] = [];
  const state = {
    told: { place, addresses: ['127.0.0.1'], of: { tcp: `${port}` }, version: 7 } as ToldPorts | null,
    isAway: false,
    addresses: [AT] as readonly string[],
  };
  host.on('connection', (socket: Socket) => socket.on('error', () => {}).pipe(socket));
  const ports = new FrontPorts({
    told: () => state.told,
    matched: (version) => matched.push(version),
    dial: async (at, address) => {
      if (state.isAway) throw new Error('away');
      const socket = connect((host.address() as { port: number }).port, '127.0.0.1');
      await once(socket, 'connect');
      socket.write(`${at} ${address} `);
      return socket;
    },
    addressesOf: () => state.addresses,
    refusalOf: (protocol) => (protocol === 'mysql' ? Buffer.from('not now') : null),
    alarms: { raise: (code, detail) => raised.set(code, detail), clear: (code) => raised.delete(code) },
    clock: systemClock,
  });
  t.after(async () => {
    await ports.close();
    host.close();
  });
  return { ports, port, state, raised, matched };
}

/** The answer of the port; '': it is closed, or closes without an answer. */
async function ask(port: number, address = AT): Promise<string> {
  const socket = connect({ port, host: address });
  socket.end('hi');
  return socket.toArray().then(
    (parts) => Buffer.concat(parts).toString(),
    () => '',
  );
}

test('the ports that the host tells are open, and go on while it tells none', async (t) => {
  const { ports, port, state, matched } = await openFront(t);
  await ports.match(0);
  assert.deepEqual(matched, [7]);
  assert.equal(await ask(port), `${port} 127.0.0.1 hi`);
  state.told = null;
  await ports.match(100_000);
  assert.equal(await ask(port), `${port} 127.0.0.1 hi`);
  state.told = { place: 'elsewhere', addresses: [], of: {} };
  await ports.match(30_000);
  assert.equal(await ask(port), `${port} 127.0.0.1 hi`, 'the host may tell it again soon');
  await ports.match(100_000);
  assert.equal(await ask(port), '');
});

test('while the host is away a client is told so where its protocol has words for it', async (t) => {
  const { ports, port, state } = await openFront(t);
  state.isAway = true;
  await ports.match(0);
  assert.equal(await ask(port), '');
  state.told = { place: 'elsewhere', addresses: [], of: { mysql: `${port + 1}`, unknown: `${port + 2}` } };
  await ports.match(1000);
  assert.equal(await ask(port + 1), 'not now');
  assert.equal(await ask(port + 2), '');
});

test('a port that another program has raises an alarm, and is tried again', async (t) => {
  const { ports, port, raised } = await openFront(t);
  const other = createServer().listen(port, AT);
  await once(other, 'listening');
  await ports.match(0);
  assert.match(raised.get('front_ports_taken') ?? '', new RegExp(`1 ports .* such as ${port} \\(EADDRINUSE`));
  other.close();
  await once(other, 'close');
  await ports.match(6000);
  assert.equal(await ask(port), `${port} 127.0.0.1 hi`);
  assert.equal(raised.size, 0);
});

test("on the host's own network nothing is taken from it", async (t) => {
  const { ports, port, state, raised } = await openFront(t, networkPlace());
  for (const [own, hosts] of [
    [['127.0.0.1'], ['127.0.0.1']],
    [['*'], ['127.0.0.1']],
    [[AT], ['*']],
  ] as const) {
    Object.assign(state, { addresses: own });
    state.told = { place: networkPlace(), addresses: hosts, of: { tcp: `${port}` } };
    await ports.match(0);
    assert.equal(await ask(port), '', `${own} beside ${hosts}`);
    assert.equal(await ask(port, '127.0.0.1'), '');
  }
  assert.equal(raised.size, 0);
});
