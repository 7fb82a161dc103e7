/** The audit log of two nodes: both store entries while both try to seal them. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { verifyChain } from '../../audit/chain.ts';
import { Seals } from '../../audit/seals.ts';
import { AuditStore } from '../../audit/store.ts';
import { Trail } from '../../audit/trail.ts';
import { Changes } from '../../metadata/change.ts';
import { Alarms } from '../../platform/alarms.ts';
import { systemClock as clock } from '../../platform/clock.ts';
import { operatorPostgresql } from '../../testing/operator-postgresql.ts';
import type { OperatorServer } from '../../testing/operator-server.ts';
import { noPostgresql } from '../../testing/postgresql-fixture.ts';
import { PostgresqlMetadata } from './postgresql-metadata.ts';

const WRITERS = 4;
const ENTRIES = 150;

interface Node {
  readonly metadata: PostgresqlMetadata;
  readonly trail: Trail;
  readonly seals: Seals;
}

describe('the audit log at two nodes', { skip: noPostgresql }, () => {
  let server: OperatorServer;
  const nodes: Node[] = [];
  before(async () => {
    server = await operatorPostgresql();
    for (const nodeId of ['nod-1', 'nod-2']) nodes.push(await joined(nodeId));
  });
  after(async () => {
    for (const { metadata } of nodes) await metadata.close();
    await server?.close();
  });

  async function joined(nodeId: string): Promise<Node> {
    const metadata = await PostgresqlMetadata.open({
      url: server.url('postgres', 'of-the-operator'),
      clock,
      alarms: new Alarms(clock),
      onTakenOver: assert.fail,
      node: { nodeId, name: nodeId, url: `http://${nodeId}:1`, version: '1', isHost: false },
    });
    const shared = { changes: new Changes({ metadata }), store: new AuditStore(metadata), clock };
    return { metadata, trail: new Trail(shared), seals: new Seals(shared) };
  }

  test('each entry is sealed once, however often both seal, and the chain is verified', async (t) => {
    const [one, two] = nodes as [Node, Node];
    let isOver = false;
    const write = async ({ trail }: Node, writer: number) => {
      for (let i = 0; i < ENTRIES; i++) {
        const action = `call-${writer}-${i % 30}`;
        await trail.write(entryOf(action));
      }
    };
    const seal = async ({ seals }: Node) => {
      while (!isOver) await seals.seal({ all: true });
    };
    const sealing = nodes.map(seal);
    const writers = Array.from({ length: WRITERS }, (_, i) => write(nodes[i % 2] as Node, i));
    await Promise.all(writers);
    isOver = true;
    await Promise.all(sealing);
    await one.seals.seal({ all: true });
    const verified = await verifyChain(two.metadata);
    const { ok, rows, unsealed, ranges, fault } = verified;
    assert.deepEqual(
      { ok, rows, unsealed, fault },
      { ok: true, rows: WRITERS * ENTRIES, unsealed: 0, fault: null },
    );
    t.diagnostic(`${rows} entries in ${ranges} ranges`);
    assert.ok(ranges > 1);
    // Every node notices later changes.
    await one.metadata.commit([
      {
        sql: 'UPDATE audit_rows SET target = ? WHERE id = (SELECT max(id) FROM audit_rows)',
        params: ['other'],
      },
    ]);
    assert.equal((await verifyChain(two.metadata)).ok, false);
  });
});

function entryOf(action: string) {
  return {
    accountId: 8,
    // Entries of administrators about other accounts are stored one by one.
    actorId: 7,
    actor: 'ada',
    via: 'key',
    credential: 'key-1',
    address: '203.0.113.5',
    agent: 'test',
    action,
    target: 'photos',
    outcome: 'done' as const,
    status: 201,
    code: '',
    requestId: 'req-1',
    detail: '',
  };
}
