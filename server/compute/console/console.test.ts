import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { isAppError } from '../../platform/errors.ts';
import { ScriptedConsoles } from '../../testing/scripted-consoles.ts';
import { Consoles, type Seat } from './console.ts';

const VM = 'vm-a';

function open(log = '') {
  const engine = new ScriptedConsoles();
  engine.running.add(VM);
  engine.log = Buffer.from(log);
  return { engine, consoles: new Consoles({ hypervisor: engine }) };
}

function watch(seat: Seat) {
  const seen = { text: '', ends: 0 };
  seat.watch({
    send: (bytes) => {
      seen.text += Buffer.from(bytes).toString('utf8');
    },
    end: () => {
      seen.ends++;
    },
  });
  return seen;
}

test('many viewers share one console, and each begins with what came before', async () => {
  const { engine, consoles } = open('booted\n');
  const [first, second] = await Promise.all([consoles.join(VM), consoles.join(VM)]);
  assert.equal(engine.opened.length, 1);
  const one = watch(first);
  engine.latest.say('login: ');
  const two = watch(second);
  engine.latest.say('root\n');
  for (const seen of [one, two]) assert.equal(seen.text, 'booted\nlogin: root\n');
});

test('it is kept when the last viewer leaves, and remembers what came meanwhile', async () => {
  const { engine, consoles } = open();
  const first = await consoles.join(VM);
  const gone = watch(first);
  first.leave();
  engine.latest.say('x'.repeat(70_000));
  engine.latest.say('end');
  assert.equal(gone.text, '');
  const seen = watch(await consoles.join(VM));
  assert.equal(seen.text, `${'x'.repeat(65_533)}end`);
  assert.deepEqual([engine.opened.length, engine.latest.isReleased], [1, false]);
});

test('what comes while the log is read is shown once', async () => {
  for (const [log, early, wanted] of [
    ['abc', ['c', 'd'], 'abcd'],
    ['abc', ['abc'], 'abc'],
    ['abc', ['def'], 'abcdef'],
    ['', ['x'], 'x'],
  ] as const) {
    const { engine, consoles } = open(log);
    const read = Promise.withResolvers<void>();
    engine.logComes = read.promise;
    const joining = consoles.join(VM);
    await turn();
    for (const text of early) engine.latest.say(text);
    read.resolve();
    assert.equal(watch(await joining).text, wanted, `${log} and ${early}`);
  }
});

test('after our restart the log of the engine fills the ring again', async () => {
  const { engine, consoles } = open();
  await consoles.join(VM);
  consoles.close();
  assert.equal(engine.latest.isReleased, true);
  engine.log = Buffer.from('said meanwhile');
  const again = new Consoles({ hypervisor: engine });
  assert.equal(watch(await again.join(VM)).text, 'said meanwhile');
});

test('what several write arrives whole and in order, also when the guest takes the first late', async () => {
  const { engine, consoles } = open();
  const [one, two] = [await consoles.join(VM), await consoles.join(VM)];
  const takes = Promise.withResolvers<void>();
  engine.latest.takes = takes.promise;
  const writes = [one.write(Buffer.from('a1 ')), two.write(Buffer.from('b1 '))];
  await turn();
  engine.latest.takes = Promise.resolve();
  writes.push(one.write(Buffer.from('a2 ')), two.write(Buffer.from('b2 ')));
  await turn();
  assert.deepEqual(engine.latest.written, []);
  takes.resolve();
  await Promise.all(writes);
  assert.deepEqual(engine.latest.written, ['a1 ', 'b1 ', 'a2 ', 'b2 ']);
});

test('a write that fails hurts neither its sender nor the next', async () => {
  const { engine, consoles } = open();
  const seat = await consoles.join(VM);
  engine.latest.takes = Promise.reject(new Error('broken pipe'));
  await seat.write(Buffer.from('lost'));
  engine.latest.takes = Promise.resolve();
  await seat.write(Buffer.from('kept'));
  assert.deepEqual(engine.latest.written, ['kept']);
});

test('when the guest stops all viewers are told once, and the next run has its own console', async () => {
  const { engine, consoles } = open();
  const seats = [await consoles.join(VM), await consoles.join(VM)];
  const seen = seats.map(watch);
  engine.latest.stop();
  consoles.close();
  assert.deepEqual(
    seen.map(({ ends }) => ends),
    [1, 1],
  );
  await seats[0]?.write(Buffer.from('nobody there'));
  assert.deepEqual(engine.latest.written, []);
  await consoles.join(VM);
  assert.equal(engine.opened.length, 2);
});

test('a viewer that comes as the guest goes is told', async () => {
  const { engine, consoles } = open();
  const seat = await consoles.join(VM);
  engine.latest.stop();
  assert.equal(watch(seat).ends, 1);
});

test('a guest that stops while its console is opened has none', async () => {
  const { engine, consoles } = open();
  const read = Promise.withResolvers<void>();
  engine.logComes = read.promise;
  const joining = consoles.join(VM);
  await turn();
  engine.latest.stop();
  read.resolve();
  await assert.rejects(joining, (error) => isAppError(error, 'vm_not_running'));
  await consoles.join(VM);
});

test('without a running guest there is no console, and later there may be one', async () => {
  const { engine, consoles } = open();
  engine.running.clear();
  await assert.rejects(consoles.join(VM), (error) => isAppError(error, 'vm_not_running'));
  engine.running.add(VM);
  await consoles.join(VM);
});

test('a log that cannot be read lets go of the console, and the next viewer tries anew', async () => {
  const { engine, consoles } = open();
  engine.logComes = Promise.reject(new Error('EIO'));
  await assert.rejects(consoles.join(VM), /EIO/);
  assert.equal(engine.latest.isReleased, true);
  engine.logComes = Promise.resolve();
  await consoles.join(VM);
  assert.equal(engine.opened.length, 2);
});

test('there are 32 slots, and who leaves gives one back', async () => {
  const { consoles } = open();
  const seats = await Promise.all(Array.from({ length: 32 }, () => consoles.join(VM)));
  await assert.rejects(consoles.join(VM), (error) => isAppError(error, 'overloaded'));
  seats[0]?.leave();
  await consoles.join(VM);
});
