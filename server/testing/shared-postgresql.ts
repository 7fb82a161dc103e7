/**
 * The databases of an operator's PostgreSQL server for the tests of a file, and the connections that they
 * open.
 */
import { after, afterEach, before } from 'node:test';
import { operatorPostgresql } from './operator-postgresql.ts';
import type { OperatorServer } from './operator-server.ts';

interface Closing {
  close(): Promise<unknown>;
}

/** Call it in `describe`: the server ends with its tests. */
export function sharedPostgresql() {
  let server: OperatorServer;
  let databases = 0;
  const opened: Promise<Closing>[] = [];
  before(async () => {
    server = await operatorPostgresql();
  });
  afterEach(async () => {
    // A failed test leaves some open, which would keep the server running.
    for (const each of await Promise.allSettled(opened.splice(0)))
      if (each.status === 'fulfilled') await each.value.close();
  });
  after(() => server?.close());
  return {
    server: () => server,
    /** URL of a new, empty database. */
    async newDatabase(): Promise<string> {
      const name = `own_${++databases}`;
      await server.run(`CREATE DATABASE ${name}`);
      return server.url('postgres', 'of-the-operator').replace(/postgres$/, name);
    },
    /** Closed after the test, if it was opened. */
    keep<T extends Closing>(opening: Promise<T>): Promise<T> {
      opened.push(opening);
      return opening;
    },
  };
}
