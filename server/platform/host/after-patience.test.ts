import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterPatience } from './after-patience.ts';

test('patience for a wait grows while it lasts, and ends with it', async () => {
  let load = 4;
  const { promise: late, resolve } = Promise.withResolvers<number>();
  afterPatience(50, resolve, () => load);
  const passedMs = await late;
  assert.ok(passedMs >= 200, `${passedMs} ms`);
  load = 1;
  const ended = afterPatience(
    20,
    () => assert.fail('was ended'),
    () => load,
  );
  ended();
  await sleep(60);
});
