import assert from 'node:assert/strict';
import { Duplex, duplexPair } from 'node:stream';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { FLAG, type Segment } from './packets.ts';
import { TcpConnection } from './tcp-connection.ts';

type Sent = Omit<Segment, 'from' | 'fromPort' | 'to' | 'toPort'>;

const ISN = 0xffff_fff0;
const MSS_1000 = [2, 4, 3, 232];
const SCALE_2 = [3, 3, 2, 1];

/** A connection whose guest is the test: it receives each segment, and sends any. */
function opened({ options = [...MSS_1000, ...SCALE_2], budget = 64 * 1024, isDeaf = false } = {}) {
  const [near, far] = duplexPair();
  const service = isDeaf ? new Duplex({ read() {}, write() {} }) : near;
  const sent: Sent[] = [];
  const state = { now: 1_000_000, isFull: false, isClosed: false };
  const segment = (more: Partial<Sent>): Segment => ({
    from: 1,
    fromPort: 40_000,
    to: 2,
    toPort: 5432,
    seq: ISN,
    ack: 0,
    flags: FLAG.ack,
    window: 1000,
    options: new Uint8Array(),
    payload: Buffer.alloc(0),
    ...more,
  });
  const syn = segment({ flags: FLAG.syn, options: Uint8Array.from(options) });
  const tcp = new TcpConnection(syn, service, {
    emit: (each) => sent.push({ ...each, payload: Buffer.from(each.payload) }),
    isWireFull: () => state.isFull,
    budget: () => budget,
    soon: () => {},
    now: () => state.now,
    onClosed: () => {
      state.isClosed = true;
    },
  });
  const [synAck] = sent.splice(0) as [Sent];
  const say = async (more: Partial<Sent>) => {
    tcp.receive(segment(more));
    await turn();
    tcp.flush();
    return sent.splice(0);
  };
  const first = (ISN + 1) >>> 0;
  const own = (synAck.seq + 1) >>> 0;
  /** Sequence numbers from the start of either side's bytes. */
  const at = (fromGuest: number, acked: number) => ({
    seq: (first + fromGuest) >>> 0,
    ack: (own + acked) >>> 0,
  });
  const tick = async (ms: number) => {
    state.now += ms;
    tcp.tick();
    await turn();
    return sent.splice(0);
  };
  return { tcp, service, far, state, synAck, say, at, tick, take: () => sent.splice(0), own, first };
}

const lengths = (sent: readonly Sent[]) => sent.map(({ payload }) => payload.length);

test('the answer to a SYN names a segment size, a window, and a scale when the guest has one', () => {
  const { synAck } = opened();
  assert.equal(synAck.flags, FLAG.syn | FLAG.ack);
  assert.equal(synAck.ack, (ISN + 1) >>> 0);
  assert.deepEqual([...synAck.options], [2, 4, 8960 >> 8, 8960 & 255, 3, 3, 7, 1]);
  assert.deepEqual([...opened({ options: MSS_1000 }).synAck.options], [2, 4, 8960 >> 8, 8960 & 255]);
  for (const options of [[2, 0], [2, 4], [3], [1, 1, 1, 9], [0], [254, 255]]) opened({ options });
});

test('bytes of the guest reach the service once and in order, around the end of the numbers', async () => {
  const { far, say, at } = opened();
  let heard = '';
  far.on('data', (bytes) => {
    heard += bytes;
  });
  await say(at(0, 0));
  const [ack] = await say({ ...at(0, 0), payload: Buffer.from('x'.repeat(40)) });
  assert.equal(ack?.ack, at(40, 0).seq);
  // A repeated segment, a partly repeated one with more, and one that leaves a gap.
  assert.equal((await say({ ...at(0, 0), payload: Buffer.from('x'.repeat(40)) }))[0]?.ack, at(40, 0).seq);
  assert.equal((await say({ ...at(30, 0), payload: Buffer.from('xxxxxxxxxxyz') }))[0]?.ack, at(42, 0).seq);
  assert.equal((await say({ ...at(50, 0), payload: Buffer.from('gap') }))[0]?.ack, at(42, 0).seq);
  assert.equal(heard, `${'x'.repeat(40)}yz`);
});

test('the guest gets no more than its window and its segments hold', async () => {
  const { far, say, at } = opened();
  await say({ ...at(0, 0), window: 600 });
  far.write(Buffer.alloc(5000, 1));
  // A window of 600 * 2^2.
  assert.deepEqual(lengths(await say({ ...at(0, 0), window: 600 })), [1000, 1000]);
  assert.deepEqual(lengths(await say({ ...at(0, 2000), window: 600 })), [1000, 1000]);
  assert.deepEqual(lengths(await say({ ...at(0, 4000), window: 600 })), [1000]);
});

test('what is not acknowledged is sent again, ever more seldom', async () => {
  const { far, say, at, tick, take } = opened();
  await say(at(0, 0));
  far.write('hello');
  await turn();
  assert.equal(String(take()[0]?.payload), 'hello');
  assert.deepEqual(await tick(500), []);
  assert.equal(String((await tick(600))[0]?.payload), 'hello');
  assert.deepEqual(await tick(1500), []);
  assert.equal(String((await tick(600))[0]?.payload), 'hello');
  await say(at(0, 5));
  assert.deepEqual(await tick(20_000), []);
});

test('a closed window is asked about with one byte', async () => {
  const { far, say, at, tick } = opened();
  await say({ ...at(0, 0), window: 0 });
  far.write('hello');
  assert.deepEqual(await say({ ...at(0, 0), window: 0 }), []);
  assert.deepEqual(lengths(await tick(1100)), [1]);
  assert.deepEqual(lengths(await say({ ...at(0, 1), window: 100 })), [4]);
});

test('a service that does not read closes the window, and opens it when it does', async () => {
  const { far, say, at, take } = opened({ budget: 20_000 });
  await say(at(0, 0));
  let sentBytes = 0;
  for (let window = 1; window > 0 && sentBytes < 200_000; ) {
    const [ack] = await say({ ...at(sentBytes, 0), payload: Buffer.alloc(1000) });
    sentBytes = ((ack?.ack ?? 0) - at(0, 0).seq) | 0;
    window = (ack?.window ?? 0) << 7;
    if (window < 1000) break;
  }
  // The test's stream buffers 64 KiB itself.
  assert.ok(sentBytes > 64_000 && sentBytes < 95_000, `${sentBytes}`);
  take();
  far.resume();
  for (let turns = 0; turns < 20; turns++) await turn();
  const [update] = await say(at(sentBytes, 0));
  assert.ok((update?.window ?? 0) << 7 > 10_000, JSON.stringify(update));
});

test('bytes one by one for a service that does not read are put together', async () => {
  const { service, tcp, say, at, state } = opened({ isDeaf: true });
  await say(at(0, 0));
  const said = { flags: FLAG.ack, window: 1000, options: new Uint8Array() };
  const ends = { from: 1, fromPort: 40_000, to: 2, toPort: 5432 };
  let sent = 0;
  for (; sent < 60_000; sent++) tcp.receive({ ...ends, ...said, ...at(sent, 0), payload: Buffer.from('x') });
  const [ack] = await say(at(sent, 0));
  assert.equal(ack?.ack, at(sent, 0).seq, 'all were taken');
  assert.equal(service.writableLength, 1, 'the stream has an object for each write');
  assert.equal(state.isClosed, false);
});

test('a guest that does not read holds up the service, in bounded memory', async () => {
  const { far, say, at } = opened({ budget: 20_000 });
  await say({ ...at(0, 0), window: 0 });
  let written = 0;
  while (far.write(Buffer.alloc(10_000)) && written < 50) {
    written++;
    await turn();
  }
  assert.ok(written < 20, `${written} times 10,000 bytes`);
});

test('each side ends by itself, and the connection with both', async () => {
  const { far, say, at, state, take } = opened();
  await say(at(0, 0));
  const [ack] = await say({ ...at(0, 0), payload: Buffer.from('bye'), flags: FLAG.ack | FLAG.fin });
  assert.equal(ack?.ack, at(4, 0).seq);
  assert.equal(String(far.read()), 'bye');
  await new Promise((resolve) => far.once('end', resolve).resume());
  far.end('and you');
  await turn();
  await turn();
  const said = take();
  assert.equal(said.map(({ payload }) => String(payload)).join(''), 'and you');
  assert.equal((said.at(-1)?.flags ?? 0) & FLAG.fin, FLAG.fin);
  assert.equal(state.isClosed, false);
  await say(at(4, 8));
  assert.equal(state.isClosed, true);
});

test('an end that got lost is sent again, and not once it is known', async () => {
  const { far, say, at, tick, take } = opened();
  await say(at(0, 0));
  far.end('x');
  await turn();
  await turn();
  take();
  const again = await tick(1100);
  assert.deepEqual(lengths(again), [1, 0]);
  assert.equal((again[1]?.flags ?? 0) & FLAG.fin, FLAG.fin);
  await say(at(0, 2));
  assert.deepEqual(await tick(20_000), []);
});

test('only a reset with the exact number ends it', async () => {
  const { service, say, at, state } = opened();
  await say(at(0, 0));
  await say({ ...at(5, 0), flags: FLAG.rst });
  assert.equal(state.isClosed, false);
  await say({ ...at(0, 0), flags: FLAG.rst });
  assert.deepEqual([state.isClosed, service.destroyed], [true, true]);
});

test('a service that breaks resets the guest', async () => {
  const { tcp, far, say, at, state, take } = opened();
  await say(at(0, 0));
  far.destroy();
  await turn();
  await turn();
  if (!state.isClosed) tcp.abort();
  assert.equal(take().at(-1)?.flags, FLAG.rst | FLAG.ack);
});

test('a guest that began anew is told what we expect, so that it resets the old connection', async () => {
  const { say, at } = opened();
  await say(at(0, 0));
  const [answer] = await say({ flags: FLAG.syn, seq: 77 });
  assert.deepEqual([answer?.flags, answer?.ack], [FLAG.ack, at(0, 0).seq]);
});

test('an idle guest is asked whether it is there, and given up', async () => {
  const { say, at, tick, state } = opened();
  await say(at(0, 0));
  const [probe] = await tick(31_000);
  assert.equal(probe?.seq, (at(0, 0).ack - 1) >>> 0);
  await say(at(0, 0));
  for (let waited = 0; waited < 6; waited++) await tick(29_000);
  assert.equal(state.isClosed, true);
});

test('a full wire takes no data until it has room', async () => {
  const { tcp, far, say, at, state, take } = opened();
  await say(at(0, 0));
  state.isFull = true;
  far.write('hello');
  await turn();
  assert.deepEqual(take(), []);
  state.isFull = false;
  tcp.pump();
  assert.equal(String(take()[0]?.payload), 'hello');
});

test('acknowledgements of what was never sent change nothing', async () => {
  const { say, at, state, far, take } = opened();
  await say(at(0, 0));
  await say(at(0, 500));
  far.write('hello');
  await turn();
  assert.equal(String(take().at(-1)?.payload), 'hello');
  assert.equal(state.isClosed, false);
});
