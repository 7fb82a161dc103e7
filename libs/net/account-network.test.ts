/** The traffic that a network passes between the sockets of guests: the test is QEMU's end of each. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { duplexPair } from 'node:stream';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { AccountNetwork, PERIOD_MS } from './account-network.ts';
import { datagramFrame, FLAG, segmentFrame } from './packets.ts';
import { ipNumber, SwitchPort } from './switch-port.ts';

const folder = mkdtempSync(join(tmpdir(), 'cloudlet-net-'));
const closing: (() => void)[] = [];
after(() => {
  for (const close of closing) close();
  rmSync(folder, { recursive: true });
});

const GATEWAY = Buffer.from('5a0000000001', 'hex');
const BROADCAST = Buffer.from('ffffffffffff', 'hex');
const DNS = ipNumber('10.64.0.1');
const DATABASE = ipNumber('10.64.0.17');
let sockets = 0;

interface Guest {
  readonly ip: number;
  readonly mac: Buffer;
  readonly port: SwitchPort;
  readonly wire: Socket;
  /** Received frames, without their lengths. */
  take(): Buffer[];
}

function newNetwork(
  dial: (number: number, port: number) => ReturnType<typeof duplexPair>[0] | null = () => null,
) {
  const network = new AccountNetwork({
    findDatabase: async (name) => (name === 'shop' ? 1 : null),
    dialDatabase: async (_plug, number, port) => dial(number, port),
    dialData: async () => null,
    keysFor: async () => [],
    dataPorts: new Set([80]),
    now: () => performance.now(),
  });
  const timer = setInterval(() => network.renew(), PERIOD_MS);
  closing.push(() => clearInterval(timer));
  const join1 = async (hostname: string, address: string): Promise<Guest> => {
    const path = join(folder, String(++sockets));
    const server = createServer().listen(path);
    await once(server, 'listening');
    const mac = `56:00:00:00:00:${address.split('.')[3]?.padStart(2, '0')}`;
    const port = new SwitchPort({ vmId: `vm-${sockets}`, accountId: 1, hostname, mac, address }, path, {
      enter: (from, frame) => network.enter(from, frame),
      settle: () => network.settle(),
      onRoom: (from) => network.onRoom(from),
      onClosed: (from) => network.leave(from),
    });
    const [wire] = (await once(server, 'connection')) as [Socket];
    server.close();
    closing.push(() => wire.destroy());
    assert.ok(network.join(port));
    let bytes = Buffer.alloc(0);
    wire
      .on('error', () => {})
      .on('data', (piece: Buffer) => {
        bytes = Buffer.concat([bytes, piece]);
      });
    const take = () => {
      const frames: Buffer[] = [];
      while (bytes.length >= 4 && bytes.length >= 4 + bytes.readUInt32BE(0)) {
        frames.push(bytes.subarray(4, 4 + bytes.readUInt32BE(0)));
        bytes = bytes.subarray(4 + bytes.readUInt32BE(0));
      }
      return frames;
    };
    return { ip: port.ip, mac: port.mac, port, wire, take };
  };
  return { network, join: join1 };
}

const settled = () => sleep(60);

function datagram(
  from: Guest,
  to: { ip: number; mac: Buffer },
  lie: { ip?: number; mac?: Buffer } = {},
): Buffer {
  const ends = { from: lie.ip ?? from.ip, fromPort: 1, to: to.ip, toPort: 2 };
  return datagramFrame({ from: lie.mac ?? from.mac, to: to.mac }, { ...ends, payload: Buffer.from('hello') });
}

function syn(from: Guest, fromPort: number): Buffer {
  const nothing = Buffer.alloc(0);
  const ends = { from: from.ip, fromPort, to: DATABASE, toPort: 5432 };
  const rest = { seq: 7, ack: 0, flags: FLAG.syn, window: 1000, options: nothing, payload: nothing };
  return segmentFrame({ from: from.mac, to: GATEWAY }, { ...ends, ...rest });
}

function arp(operation: number, sender: { ip: number; mac: Buffer }, target: number): Buffer {
  const frame = Buffer.alloc(4 + 42);
  frame.writeUInt32BE(42, 0);
  frame.set(BROADCAST, 4);
  frame.set(sender.mac, 10);
  frame.writeUInt16BE(0x0806, 16);
  frame.writeUInt32BE(0x00010800, 18);
  frame.writeUInt32BE(0x06040000 + operation, 22);
  frame.set(sender.mac, 26);
  frame.writeUInt32BE(sender.ip, 32);
  frame.writeUInt32BE(target, 42);
  return frame;
}

test('frames go to the machine they name, and to no other', async () => {
  const { join: plugIn } = newNetwork();
  const [a, b, c] = [
    await plugIn('a', '10.80.0.1'),
    await plugIn('b', '10.80.0.2'),
    await plugIn('c', '10.80.0.3'),
  ];
  a.wire.write(datagram(a, b));
  await settled();
  assert.equal(b.take().length, 1);
  assert.equal(c.take().length, 0);
});

test('a machine speaks for its own addresses only', async () => {
  const { join: plugIn } = newNetwork();
  const [a, b, c] = [
    await plugIn('a', '10.80.0.1'),
    await plugIn('b', '10.80.0.2'),
    await plugIn('c', '10.80.0.3'),
  ];
  a.wire.write(datagram(a, b, { ip: c.ip }));
  a.wire.write(datagram(a, b, { mac: c.mac }));
  a.wire.write(datagram(a, b, { ip: ipNumber('8.8.8.8') }));
  a.wire.write(datagram(a, { ip: b.ip, mac: c.mac }));
  a.wire.write(datagram(a, { ip: b.ip, mac: BROADCAST }));
  a.wire.write(datagram(a, { ip: ipNumber('255.255.255.255'), mac: BROADCAST }));
  // A query in the name of another machine, and unsolicited answers.
  a.wire.write(arp(1, { ip: c.ip, mac: a.mac }, b.ip));
  a.wire.write(arp(2, { ip: c.ip, mac: a.mac }, b.ip));
  a.wire.write(arp(2, a, b.ip));
  // IPv6, and an empty frame.
  const other = datagram(a, b);
  other.writeUInt16BE(0x86dd, 16);
  a.wire.write(other);
  a.wire.write(Buffer.from([0, 0, 0, 0]));
  await settled();
  assert.deepEqual([a.take().length, b.take().length, c.take().length], [0, 0, 0]);
  a.wire.write(datagram(a, b));
  await settled();
  assert.equal(b.take().length, 1);
});

test('questions for a machine and for a service are answered for them, others never', async () => {
  const { join: plugIn } = newNetwork();
  const [a, b] = [await plugIn('a', '10.80.0.1'), await plugIn('b', '10.80.0.2')];
  for (const target of [b.ip, DNS, ipNumber('10.80.0.9'), a.ip]) a.wire.write(arp(1, a, target));
  await settled();
  const answers = a.take().map((frame) => [frame.subarray(22, 28).toString('hex'), frame.readUInt32BE(28)]);
  assert.deepEqual(answers, [
    [b.mac.toString('hex'), b.ip],
    [GATEWAY.toString('hex'), DNS],
  ]);
  assert.equal(b.take().length, 0);
});

test('two accounts have nothing in common', async () => {
  const [one, other] = [newNetwork(), newNetwork()];
  const [a, b] = [await one.join('a', '10.80.0.1'), await other.join('b', '10.80.0.2')];
  a.wire.write(datagram(a, b));
  a.wire.write(arp(1, a, b.ip));
  await settled();
  assert.deepEqual([a.take().length, b.take().length], [0, 0]);
});

test('a frame longer than any ends the wire, and cut or joined frames do not', async () => {
  const { join: plugIn } = newNetwork();
  const [a, b] = [await plugIn('a', '10.80.0.1'), await plugIn('b', '10.80.0.2')];
  const two = Buffer.concat([datagram(a, b), datagram(a, b)]);
  for (const byte of two.subarray(0, 60)) a.wire.write(Buffer.from([byte]));
  a.wire.write(two.subarray(60));
  await settled();
  assert.equal(b.take().length, 2);
  a.wire.write(Buffer.from([0xff, 0xff, 0xff, 0xff]));
  await once(a.wire, 'close');
});

test('a port that leads nowhere is refused; new connections and names have a rate', async () => {
  const dialed: number[] = [];
  const { join: plugIn } = newNetwork((number) => {
    dialed.push(number);
    return null;
  });
  const a = await plugIn('a', '10.80.0.1');
  for (let port = 1; port <= 350; port++) a.wire.write(syn(a, port));
  await settled();
  assert.ok(dialed.length >= 200 && dialed.length < 220, `${dialed.length} dialed`);
  assert.deepEqual([...new Set(dialed)], [1]);
  const resets: Buffer[] = [];
  for (let waited = 0; waited < 50 && resets.length < dialed.length; waited++) {
    await settled();
    resets.push(...a.take());
  }
  // Above the maximum of open connections, they are refused without one.
  assert.ok(resets.length >= dialed.length && resets.length < 350, `${resets.length} refused`);
  // FLAG.rst | FLAG.ack, and the number after that of the SYN.
  assert.deepEqual([resets[0]?.[47], resets[0]?.readUInt32BE(42)], [20, 8]);
});

test('connections of an account have a bound, and end with their machine', async () => {
  const services: ReturnType<typeof duplexPair>[0][] = [];
  const { network, join: plugIn } = newNetwork(() => {
    const [near] = duplexPair();
    services.push(near);
    return near;
  });
  const a = await plugIn('a', '10.80.0.1');
  for (let port = 1; port <= 260; port++) {
    a.wire.write(syn(a, port));
    if (port % 100 === 0) await sleep(1100);
  }
  await settled();
  assert.equal(services.length, 200);
  network.leave(a.port);
  assert.ok(services.every(({ destroyed }) => destroyed));
});

test('a machine that floods waits, and its neighbour in another account does not', async () => {
  const [loud, quiet] = [newNetwork(), newNetwork()];
  const [a, sink] = [await loud.join('a', '10.80.0.1'), await loud.join('b', '10.80.0.2')];
  const [c, d] = [await quiet.join('c', '10.80.0.1'), await quiet.join('d', '10.80.0.2')];
  let arrived = 0;
  sink.wire.on('data', (bytes: Buffer) => {
    arrived += bytes.length;
  });
  const frame = datagram(a, sink);
  const many = Buffer.concat(Array.from({ length: 1000 }, () => frame));
  let isOver = false;
  const flood = () => {
    while (!isOver && a.wire.write(many));
  };
  a.wire.on('drain', flood);
  flood();
  const [beganAt, before] = [performance.now(), arrived];
  for (let turn = 0; turn < 20; turn++) {
    c.wire.write(datagram(c, d));
    for (let tries = 0; d.take().length === 0; tries++) {
      assert.ok(tries < 2000, 'the frame did not arrive');
      await sleep(1);
    }
  }
  await sleep(1000);
  isOver = true;
  const perSecond = (arrived - before) / frame.length / ((performance.now() - beganAt) / 1000);
  // 400 in each period of 20 ms, and those read together with them.
  assert.ok(perSecond < 30_000, `${perSecond} frames per second`);
});

test('short frames that wait for a machine do not keep what was sent with them', async () => {
  const { join: joining } = newNetwork();
  const [a, deaf] = [await joining('a', '10.80.0.1'), await joining('b', '10.80.0.2')];
  deaf.wire.pause();
  const ends = { from: a.ip, fromPort: 1, to: deaf.ip, toPort: 2 };
  const short = datagramFrame({ from: a.mac, to: deaf.mac }, { ...ends, payload: Buffer.alloc(400) });
  const filler = Buffer.alloc(4 + 65_000);
  filler.writeUInt32BE(65_000, 0);
  const both = Buffer.concat([short, filler]);
  setFlagsFromString('--expose_gc');
  const collect = runInNewContext('gc') as () => void;
  const heldMb = async () => {
    collect();
    await sleep(200);
    collect();
    return process.memoryUsage().arrayBuffers / 2 ** 20;
  };
  const before = await heldMb();
  for (let count = 0; count < 2500; count++) {
    if (!a.wire.write(both)) await once(a.wire, 'drain');
  }
  const grown = (await heldMb()) - before;
  assert.ok(grown < 10, `${grown} MiB are held for less than 1 MiB`);
  deaf.wire.resume();
  await sleep(100);
  assert.ok(deaf.take().length > 1000);
});
