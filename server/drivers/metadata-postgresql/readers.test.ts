import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { noPostgresql } from '../../testing/postgresql-fixture.ts';
import { sharedPostgresql } from '../../testing/shared-postgresql.ts';
import { connect } from './connections.ts';
import { Readers } from './readers.ts';

describe('reads over a few connections', { skip: noPostgresql }, () => {
  const { newDatabase, keep } = sharedPostgresql();

  test('none waits behind a long one while a connection is free', async () => {
    const url = await newDatabase();
    const readers = new Readers((onEnd) => connect({ url, onEnd }));
    const close = () => Promise.all(readers.clients.map(async (client) => (await client).end()));
    void keep(Promise.resolve({ close }));
    const done: string[] = [];
    const read = async (name: string, seconds: number) => {
      await readers.all('SELECT pg_sleep(?)', [seconds]);
      done.push(name);
    };
    const long = [1, 2, 3].map(async (i) => {
      await sleep(50 * i);
      await read(`long ${i}`, 3);
    });
    await sleep(500);
    // The free connection has one too when the next turn chooses.
    const short = [read('short', 0.3)];
    await sleep(50);
    short.push(read('next', 0));
    await Promise.all(short);
    assert.deepEqual(done, ['short', 'next']);
    await Promise.all(long);
  });
});
