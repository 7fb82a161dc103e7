/** Runs a test in the older format of MongoDB's specification: one operation on one collection. */
import assert from 'node:assert/strict';
import { type Document, MongoBulkWriteError } from 'mongodb';
import { assertMatches, assertSame } from './matching.ts';
import { type Operation, perform } from './operations.ts';
import type { Requirement, Server } from './server.ts';

export interface LegacyTest {
  readonly description: string;
  readonly operation: Operation;
  readonly outcome: {
    readonly error?: true;
    readonly result?: unknown;
    readonly collection?: { readonly name?: string; readonly data: readonly Document[] };
  };
}

export interface LegacyFile extends Requirement {
  readonly data: readonly Document[];
  readonly tests: readonly LegacyTest[];
}

export async function runLegacyTest(server: Server, file: LegacyFile, test: LegacyTest): Promise<void> {
  const { db } = server;
  await db.dropDatabase();
  const collection = db.collection('test');
  if (file.data.length > 0) await collection.insertMany([...file.data]);
  const { operation, outcome } = test;
  const tried = perform(collection, operation);
  if (outcome.error === true) {
    const error = await tried.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof Error, `${operation.name} is refused`);
    const isReported = outcome.result !== undefined && error instanceof MongoBulkWriteError;
    if (isReported) assertMatches(outcome.result, error.result, operation.name);
  } else {
    const answer = await tried;
    const isElsewhere = operation.arguments?.pipeline?.some((stage: Document) => '$out' in stage);
    // Output to a collection is in `outcome.collection` too; this driver does not read it back.
    if (!isElsewhere) assertMatches(outcome.result, answer, operation.name);
  }
  if (outcome.collection === undefined) return;
  const { name = 'test', data } = outcome.collection;
  assertSame(data, await db.collection(name).find().sort({ _id: 1 }).toArray(), name);
}
