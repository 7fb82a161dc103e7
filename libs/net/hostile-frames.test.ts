/** One thread serves the networks of all accounts, so no frame of a machine may end it or keep it busy. */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { AccountNetwork } from './account-network.ts';
import { datagramFrame, FLAG, LENGTH_BYTES, segmentFrame } from './packets.ts';
import { ipNumber, type SwitchPort } from './switch-port.ts';

const GATEWAY = Buffer.from('5a0000000001', 'hex');
const NOTHING = Buffer.alloc(0);

/** xorshift32: the same frames each time. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

function newPort(last: number, sent: Buffer[]): SwitchPort {
  return {
    member: { vmId: `vm-${last}`, accountId: 1, hostname: `m${last}`, mac: '', address: '' },
    ip: ipNumber(`10.80.0.${last}`),
    mac: Buffer.from(`5600000000${String(last).padStart(2, '0')}`, 'hex'),
    isBusy: false,
    send: (frame: Buffer) => void sent.push(frame),
    hold: () => {},
    release: () => {},
  } as unknown as SwitchPort;
}

function patterns(from: SwitchPort, random: (below: number) => number): Buffer[] {
  const link = { from: from.mac, to: GATEWAY };
  const name = Buffer.from('\x04shop\x02db\x08internal\0\0\x01\0\x01', 'latin1');
  const question = Buffer.concat([Buffer.from([0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]), name]);
  const dns = { from: from.ip, fromPort: 1000 + random(9), to: ipNumber('10.64.0.1'), toPort: 53 };
  const tcp = { ...dns, to: ipNumber('10.64.0.17'), toPort: 5432, window: random(65_536) };
  const numbers = { seq: random(2 ** 32), ack: random(2 ** 32), options: NOTHING, payload: NOTHING };
  const options = Buffer.from([2, 4, random(256), random(256), 3, 3, random(256), 1]);
  const flags = [FLAG.ack, FLAG.fin | FLAG.ack, FLAG.rst, FLAG.rst | FLAG.ack, random(64)];
  const arp = Buffer.alloc(LENGTH_BYTES + 42);
  arp.writeUInt32BE(42, 0);
  arp.set(from.mac, 10);
  arp.set(Buffer.from('0806000108000604000156', 'hex'), 16);
  return [
    datagramFrame(link, { ...dns, payload: question }),
    segmentFrame(link, { ...tcp, ...numbers, flags: FLAG.syn, options }),
    ...flags.map((flag) => segmentFrame(link, { ...tcp, ...numbers, flags: flag, payload: question })),
    arp,
  ];
}

test('frames with anything in any field end no network and are answered in bounded time', async () => {
  const random = randomFrom(20_261_127);
  const sent: Buffer[] = [];
  let now = 0;
  const network = new AccountNetwork({
    findDatabase: async () => random(20),
    dialDatabase: async () => (random(4) === 0 ? null : new PassThrough()),
    dialData: async () => new PassThrough(),
    keysFor: async () => [],
    dataPorts: new Set([80]),
    now: () => now,
  });
  const ports = [1, 2, 3].map((last) => newPort(last, sent));
  for (const port of ports) network.join(port);
  for (let round = 0; round < 4000; round++) {
    const port = ports[random(ports.length)] as SwitchPort;
    for (const whole of patterns(port, random)) {
      const frame = Buffer.from(
        whole.subarray(0, random(8) === 0 ? LENGTH_BYTES + random(whole.length) : undefined),
      );
      for (let flips = random(4); flips > 0; flips--) {
        // The machine's own addresses remain: those of others are dropped immediately.
        const at = LENGTH_BYTES + 12 + random(Math.max(1, frame.length - LENGTH_BYTES - 12));
        if (at < frame.length) frame[at] = random(256);
      }
      network.enter(port, frame);
    }
    network.settle();
    if (round % 5 === 0) network.renew();
    if (round % 50 === 0) {
      await turn();
      network.tick();
    }
    now += random(1000);
  }
  assert.ok(sent.length > 1000, `${sent.length} answers: the frames were not looked at`);
  for (const port of ports) network.leave(port);
});
