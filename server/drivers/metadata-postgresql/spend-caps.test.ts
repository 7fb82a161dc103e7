import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { Alarms } from '../../platform/alarms.ts';
import { systemClock } from '../../platform/clock.ts';
import { operatorPostgresql } from '../../testing/operator-postgresql.ts';
import type { OperatorServer } from '../../testing/operator-server.ts';
import { noPostgresql } from '../../testing/postgresql-fixture.ts';
import { testSpendCaps } from '../../testing/spend-caps.conformance.ts';
import { PostgresqlMetadata } from './postgresql-metadata.ts';

describe('metadata in PostgreSQL', { skip: noPostgresql }, () => {
  let server: OperatorServer;
  let opened = 0;
  before(async () => {
    server = await operatorPostgresql();
  });
  after(() => server?.close());

  const joined = (nodeId: string) => ({
    openMetadata: () =>
      PostgresqlMetadata.open({
        url: server.url('postgres', 'of-the-operator').replace(/postgres$/, `caps${opened}`),
        clock: systemClock,
        alarms: new Alarms(systemClock),
        onTakenOver: assert.fail,
        node: { nodeId, name: nodeId, url: `http://${nodeId}:1`, version: '1', isHost: false },
      }),
  });

  testSpendCaps('PostgreSQL', {
    open: async () => {
      opened++;
      await server.run(`CREATE DATABASE caps${opened}`);
      return joined('nod-1');
    },
    join: () => joined('nod-2'),
  });
});
