import assert from 'node:assert/strict';
import { test } from 'node:test';
import { closeParts, type LivingPart, startParts } from './parts.ts';

test('parts start in their order, and end in reverse once no job runs', async () => {
  const said: string[] = [];
  const say = (text: string) => () => void said.push(text);
  const part = (name: string): LivingPart => ({
    jobs: [{ name, everyMs: 1, per: 'node', run: async () => {} }],
    start: say(`start ${name}`),
    stop: say(`stop ${name}`),
    close: async () => say(`close ${name}`)(),
    flush: async () => say(`flush ${name}`)(),
  });
  const [first, second] = [part('first'), part('second')];
  const jobs = {
    start: ({ name }: { name: string }) => say(`job ${name}`)(),
    stop: async () => say('no job')(),
  };
  startParts([first, second], { elsewhere: [first], jobs });
  // A job gets its own notification where it runs.
  assert.deepEqual(said.splice(0), ['job first', 'start second', 'job second']);
  await closeParts([first, second], { jobs, log: { warn: assert.fail } });
  assert.deepEqual(said, [
    ...['stop first', 'stop second', 'no job', 'close second', 'close first'],
    ...['flush first', 'flush second'],
  ]);
});

test('a part that cannot write its last figures keeps no other from writing them', async () => {
  const flushed: string[] = [];
  const warned: unknown[] = [];
  const failed: LivingPart = { flush: () => Promise.reject(new Error('the disk is full')) };
  const last: LivingPart = { flush: async () => flushed.push('last') };
  const log = { warn: (...of: unknown[]) => void warned.push(of) } as never;
  await closeParts([failed, last], { jobs: { stop: async () => {} }, log });
  assert.deepEqual([flushed, warned.length], [['last'], 1]);
});
