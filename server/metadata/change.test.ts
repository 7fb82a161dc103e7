import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Alarms } from '../platform/alarms.ts';
import { systemClock } from '../platform/clock.ts';
import { openTestMetadata } from '../testing/new-metadata.ts';
import { BACKGROUND, Changes, inFirstCommit } from './change.ts';
import { CommitOutcomeUnknown, CommitRejected, type Metadata, type Statement } from './metadata.ts';

const insert = (name: string, value: number): Statement => ({
  sql: 'INSERT INTO secrets (name, sealed) VALUES (?, ?)',
  params: [name, Buffer.from([value])],
});
const update = (name: string, from: number, to: number): Statement => ({
  sql: 'UPDATE secrets SET sealed = ? WHERE name = ? AND sealed = ?',
  params: [Buffer.from([to]), name, Buffer.from([from])],
});

describe('a change', () => {
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-change-'));
  let metadata: Metadata;
  let changes: Changes;
  const valueIn = async (name: string) =>
    (await metadata.get<{ sealed: Uint8Array }>('SELECT sealed FROM secrets WHERE name = ?', name))
      ?.sealed[0];

  before(async () => {
    metadata = await openTestMetadata({ directory, clock: systemClock, alarms: new Alarms(systemClock) });
    changes = new Changes({ metadata });
  });
  after(async () => {
    await metadata.close();
    rmSync(directory, { recursive: true });
  });

  test('stores its statements and the record of the answer in one commit, then runs its hooks', async () => {
    const seen: unknown[] = [];
    const recorder = { record: (answer: unknown) => [insert(`answer ${answer}`, 1)] };
    const answer = await changes.run(recorder, (change) => {
      change.add(insert('one', 1));
      change.after(() => seen.push('stored'));
      return 'of one';
    });
    assert.equal(answer, 'of one');
    assert.deepEqual(seen, ['stored']);
    assert.equal(await valueIn('one'), 1);
    assert.equal(await valueIn('answer of one'), 1);
  });

  test('refuses a second change of one call, whose response is stored already', async () => {
    const call = { record: () => [] };
    const build = (name: string) => changes.run(call, (change) => void change.add(insert(name, 1)));
    await build('first of a call');
    await assert.rejects(build('second of a call'), /has one change/);
    assert.equal(await valueIn('second of a call'), undefined);
  });

  test('tells the caller what the statement that refused names; nothing is stored and no hook runs', async () => {
    const refusal = async (name: string) =>
      changes
        .run(BACKGROUND, (change) => {
          change.add(insert('before', 1));
          change.add(insert(name, 1), (reason) => new Error(`there is one (${reason})`));
          change.expect(update('nobody', 1, 2), () => new Error('there is none'));
          change.after(() => assert.fail('it was not stored'));
        })
        .then(
          () => 'stored',
          (error: Error) => error.message,
        );
    assert.equal(await refusal('one'), 'there is one (unique)');
    assert.equal(await refusal('another'), 'there is none');
    assert.equal(await valueIn('before'), undefined);
  });

  test('is built anew when somebody was faster', async () => {
    await changes.run(BACKGROUND, (change) => void change.add(insert('count', 0)));
    const bump = () =>
      changes.run(BACKGROUND, async (change) => {
        const value = (await valueIn('count')) ?? 0;
        change.expect(update('count', value, value + 1), 'retry');
      });
    await Promise.all(Array.from({ length: 20 }, bump));
    assert.equal(await valueIn('count'), 20);
  });

  test('gives up in the end', async () => {
    let builds = 0;
    const work = changes.run(BACKGROUND, (change) => {
      builds++;
      change.expect(update('nobody', 1, 2), 'retry');
    });
    await assert.rejects(work, { code: 'write_conflict' });
    assert.equal(builds, 50);
  });

  test('leaves what somebody did already', async () => {
    const again = [insert('one', 2), insert('beside', 2)];
    assert.equal(await changes.store(again, 'skip'), false);
    assert.equal(await valueIn('one'), 1);
    assert.equal(await valueIn('beside'), undefined);
    await assert.rejects(changes.store(again), CommitRejected);
  });

  test('stores the entry of a call in the first of its commits that is stored, and in no other', async () => {
    let stored = 0;
    const statements = () => [insert('the entry', 1)];
    const inFirst = inFirstCommit({ statements, stored: () => void stored++ });
    const add = (name: string) =>
      inFirst((call) => changes.run(call, (change) => void change.add(insert(name, 1))));
    await inFirst(async () => 'no commit');
    await assert.rejects(add('one'), CommitRejected);
    assert.deepEqual([await valueIn('the entry'), stored], [undefined, 0]);
    // A second entry would be refused, as its name is taken.
    await Promise.all([add('first of several'), add('second of several'), add('third of several')]);
    assert.deepEqual([await valueIn('the entry'), await valueIn('third of several'), stored], [1, 1, 1]);
  });

  test('runs its hooks when nobody knows whether it is stored', async () => {
    const failing: Pick<Metadata, 'commit'> = {
      commit: () => Promise.reject(new CommitOutcomeUnknown('EIO')),
    };
    let isForgotten = false;
    const work = new Changes({ metadata: failing as Metadata }).run(BACKGROUND, (change) => {
      change.add(insert('two', 2));
      change.after(() => {
        isForgotten = true;
      });
    });
    await assert.rejects(work, { code: 'read_only' });
    assert.equal(isForgotten, true);
  });
});
