import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError, type ErrorCode, isAppError } from '../platform/errors.ts';
import { openAccountFixture } from '../testing/account-fixture.ts';
import { type Metadata, withReserve } from './metadata.ts';

const STATEMENT = {
  sql: "INSERT INTO settings (name, value) VALUES ('a', 'b')",
  params: [],
  expectChanges: 1,
};

/**
 * A real database whose next `failures` commits fail for lack of space (or with `code`), and a reserve of one
 * piece.
 */
async function withFailures(
  { failures, hasReserve = true, code = 'out_of_space' as ErrorCode }: Failures,
  use: (parts: { commits: Metadata; asked: () => number; stored: () => Promise<number> }) => Promise<void>,
): Promise<void> {
  const { metadata, close } = await openAccountFixture();
  let left = failures;
  let asked = 0;
  const failing: Metadata = {
    get: metadata.get.bind(metadata),
    all: metadata.all.bind(metadata),
    snapshot: metadata.snapshot.bind(metadata),
    close: () => metadata.close(),
    commit: (statements) =>
      left-- > 0 ? Promise.reject(new AppError(code, 'refused')) : metadata.commit(statements),
  };
  const commits = withReserve(failing, async () => {
    asked++;
    return hasReserve;
  });
  const stored = async () => (await commits.all("SELECT name FROM settings WHERE name = 'a'")).length;
  try {
    await use({ commits, asked: () => asked, stored });
  } finally {
    await close();
  }
}

interface Failures {
  readonly failures: number;
  readonly hasReserve?: boolean;
  readonly code?: ErrorCode;
}

test('a commit that finds space does not touch the reserve', () =>
  withFailures({ failures: 0 }, async ({ commits, asked, stored }) => {
    assert.equal((await commits.commit([STATEMENT]))[0]?.changes, 1);
    assert.deepEqual([asked(), await stored()], [0, 1]);
  }));

test('one that finds none is stored with the reserve given back, once', () =>
  withFailures({ failures: 1 }, async ({ commits, asked, stored }) => {
    await commits.commit([STATEMENT]);
    assert.deepEqual([asked(), await stored()], [1, 1]);
  }));

test('when that is not enough, or there is no reserve, the refusal comes out and nothing is stored', async () => {
  for (const failures of [{ failures: 2 }, { failures: 1, hasReserve: false }]) {
    await withFailures(failures, async ({ commits, asked, stored }) => {
      await assert.rejects(commits.commit([STATEMENT]), (error) => isAppError(error, 'out_of_space'));
      assert.deepEqual([asked(), await stored()], [1, 0]);
    });
  }
});

test('another refusal is no reason to give the reserve away', () =>
  withFailures({ failures: 1, code: 'read_only' }, async ({ commits, asked }) => {
    await assert.rejects(commits.commit([STATEMENT]), (error) => isAppError(error, 'read_only'));
    assert.equal(asked(), 0);
  }));
