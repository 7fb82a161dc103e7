/** Connections to a database that is not ready: for engines that assign its address before they create it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EngineFixture } from './engine.conformance.ts';
import { newDatabase } from './new-database.ts';

const PASSWORD = 'aaaaaaaaaaaaaaaaaaaaaaaa';
/** On an idle host, a server that is woken up answers faster. */
const EARLY_MS = 1500;

export function testFirstConnection(name: string, open: () => Promise<EngineFixture>): void {
  test(`who connects to ${name} while the database is created waits, and is served then`, async (t) => {
    const fixture = await open();
    t.after(() => fixture.close());
    const { engine } = fixture;
    const database = newDatabase();
    await engine.reserve?.(database);
    const client = await fixture.connect(database, PASSWORD);
    const prepared = client.prepare();
    const isServed = prepared.then(
      () => true,
      (error: unknown) => error,
    );
    assert.equal(await Promise.race([isServed, sleep(EARLY_MS, 'waits')]), 'waits');
    await engine.provision(database, PASSWORD);
    await prepared;
    await client.add('first');
    assert.deepEqual(await client.notes(), ['first']);
  });
}
