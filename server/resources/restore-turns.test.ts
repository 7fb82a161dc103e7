import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isAppError } from '../platform/errors.ts';
import { RestoreTurns } from './restore-turns.ts';

/** Work that continues until it is cancelled. */
function held() {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { work: () => promise, end: () => resolve() };
}

const isRefused = (words: RegExp) => (error: unknown) =>
  isAppError(error, 'overloaded') && words.test(error.message) && error.hint !== undefined;

test('an account has one restore, also while it waits', async () => {
  const turns = new RestoreTurns({ what: 'things' });
  const { work, end } = held();
  const first = turns.run(1, work);
  await assert.rejects(turns.run(1, work), isRefused(/^Your account is already restoring things/));
  await turns.run(2, async () => {});
  end();
  await first;
  await turns.run(1, async () => {});
});

test('four accounts in portions that never end do not keep out a fifth', async () => {
  const turns = new RestoreTurns({ what: 'things' });
  let isOver = false;
  let portions = 0;
  const greedy = (account: number) =>
    turns.inPortions(account, new AbortController().signal, async (turn) => {
      while (!isOver) {
        await turn(async () => {
          portions++;
          await new Promise(setImmediate);
        });
      }
    });
  const attackers = [1, 2, 3, 4].map(greedy);
  await new Promise(setImmediate);
  const before = portions;
  const victims = [5, 6, 7].map((account) => turns.run(account, async () => portions - before));
  for (const passed of await Promise.all(victims)) assert.ok(passed <= 8, `${passed} portions came first`);
  isOver = true;
  await Promise.all(attackers);
});

test('who waits for too long, or behind too many, learns it', async () => {
  const turns = new RestoreTurns({ what: 'things', waitSeconds: 0.05 });
  const { work, end } = held();
  const all = [1, 2, 3, 4].map((account) => turns.run(account, work));
  assert.equal(turns.isWanted, false);
  const late = turns.run(5, async () => {});
  assert.equal(turns.isWanted, true);
  await assert.rejects(late, isRefused(/^4 other accounts are restoring things, and no slot /));
  assert.equal(turns.isWanted, false);
  const waiting = Array.from({ length: 28 }, (_, i) => turns.run(10 + i, async () => {}));
  await assert.rejects(
    turns.run(50, async () => {}),
    isRefused(/^32 accounts are restoring things, or wait/),
  );
  end();
  await Promise.all([...all, ...waiting]);
  await turns.run(50, async () => {});
});

test('a portion after the first one is not refused', async () => {
  const turns = new RestoreTurns({ what: 'things', waitSeconds: 0.02 });
  const others = held();
  let rest: Promise<void>[] = [];
  await turns.inPortions(1, new AbortController().signal, async (turn) => {
    await turn(async () => {
      rest = [2, 3, 4, 5].map((account) => turns.run(account, others.work));
    });
    setTimeout(others.end, 60);
    await turn(async () => {});
  });
  await Promise.all(rest);
});

test('who is in line can leave it', async () => {
  const turns = new RestoreTurns({ what: 'things' });
  const { work, end } = held();
  const all = [1, 2, 3, 4].map((account) => turns.run(account, work));
  const leaving = new AbortController();
  const waiting = turns.inPortions(5, leaving.signal, (turn) => turn(work));
  leaving.abort(new Error('left'));
  await assert.rejects(waiting, { message: 'left' });
  assert.equal(turns.isWanted, false);
  end();
  await Promise.all(all);
});
