/** The storage for the tests of a file. */
import assert from 'node:assert/strict';
import { after, afterEach, before } from 'node:test';
import type { Principal } from '../calls/principal.ts';
import { type ErrorCode, isAppError } from '../platform/errors.ts';
import { assertStoredRows } from './part-uploads-fixture.ts';
import { openStorageFixture, type StorageFixture } from './storage-fixture.ts';

interface Shared {
  readonly fixture: StorageFixture;
  readonly owner: Principal;
}

/** Opens it before the tests; the rows left by each test are checked. */
export function sharedStorage(take: (shared: Shared) => unknown): void {
  let fixture: StorageFixture;
  before(async () => {
    fixture = await openStorageFixture();
    await take({ fixture, owner: await fixture.newPrincipal('owner') });
  });
  afterEach(() => assertStoredRows(fixture));
  after(() => fixture.close());
}

/** `work` is refused with that code. */
export function rejects(work: Promise<unknown>, code: ErrorCode): Promise<void> {
  return assert.rejects(work, (error) => isAppError(error, code) || assert.fail(String(error)));
}
