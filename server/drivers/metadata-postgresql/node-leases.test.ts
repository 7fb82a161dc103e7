import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { noPostgresql } from '../../testing/postgresql-fixture.ts';
import { sharedPostgresql } from '../../testing/shared-postgresql.ts';
import { connect } from './connections.ts';
import { NodeLeases } from './node-leases.ts';
import type { NodeRow } from './node-rows.ts';
import { makeStoreTables } from './postgresql-schema.ts';

const rowOf = (writer: string) => ({ writer, state: 'up', report: '', leases: null }) as NodeRow;

describe('leases of a node', { skip: noPostgresql }, () => {
  const { newDatabase, keep } = sharedPostgresql();

  test('one that was given up is not held again for a heartbeat that was sent before', async () => {
    const url = await newDatabase();
    const client = await connect({ url, onEnd: () => {} });
    void keep(Promise.resolve({ close: () => client.end() }));
    await makeStoreTables(client);
    await client.query(
      `INSERT INTO store_nodes (node_id, writer, name, url, version, is_host, state, pid, since, beat_at)
       VALUES ('nod-1', 'one', '', '', '', 0, 'up', 1, 0, clock_timestamp())`,
    );
    let rows = [rowOf('one')];
    const leases = new NodeLeases({
      writer: 'one',
      clock: { monotonic: () => 0 },
      rows: () => rows,
      connected: async () => client,
    });
    const both = [rowOf('one'), rowOf('two')];
    const lease = await firstFor(leases, () => {
      rows = both;
      return () => {
        rows = [rowOf('one')];
      };
    });
    assert.equal(await leases.holds(lease, false), true);
    rows = both;
    const given = leases.holds(lease, false);
    // It is being deleted now.
    await setImmediate();
    leases.read([{ ...rowOf('one'), leases: [lease] }]);
    assert.equal(await given, false);
    rows = [rowOf('one')];
    assert.equal(await leases.holds(lease, false), true);
    const stored = await client.query('SELECT writer FROM store_leases WHERE name = $1', [lease]);
    assert.deepEqual(stored.rows, [{ writer: 'one' }]);
  });
});

/** A lease for which the other node is preferred, once it is there. */
async function firstFor(leases: NodeLeases, withOther: () => () => void): Promise<string> {
  const back = withOther();
  try {
    for (let i = 0; ; i++) {
      if (!(await leases.holds(`lease ${i}`, false))) return `lease ${i}`;
    }
  } finally {
    back();
  }
}
