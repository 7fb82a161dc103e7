import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CommitRejected } from '../../metadata/metadata.ts';
import { Alarms } from '../../platform/alarms.ts';
import { systemClock } from '../../platform/clock.ts';
import type { NodeChange } from '../../platform/membership.ts';
import { eventually } from '../../testing/eventually.ts';
import { noPostgresql } from '../../testing/postgresql-fixture.ts';
import { sharedPostgresql } from '../../testing/shared-postgresql.ts';
import { TcpProxy } from '../../testing/tcp-proxy.ts';
import { connect } from './connections.ts';
import { PostgresqlMetadata } from './postgresql-metadata.ts';

const put = (name: string) => ({
  sql: 'INSERT INTO settings (name, value) VALUES (?, ?)',
  params: [name, 'x'],
});

/** Whether the state of the node allowed the change. */
async function change(metadata: PostgresqlMetadata, nodeId: string, to: NodeChange): Promise<boolean> {
  const { membership } = metadata;
  const refused = (error: unknown) => {
    if (error instanceof CommitRejected) return false;
    throw error;
  };
  const isDone = await metadata.commit([membership.changing(nodeId, to)]).then(() => true, refused);
  await membership.refresh();
  return isDone;
}

describe('nodes of one database', { skip: noPostgresql }, () => {
  const { newDatabase, keep, server } = sharedPostgresql();

  /** `nodeId` undefined: it writes alone. */
  function open(url: string, nodeId?: string, isHost = false) {
    const ended: string[] = [];
    const node = { name: `host-of-${nodeId}`, url: `http://${nodeId}:1`, version: '1', isHost };
    const opening = keep(
      PostgresqlMetadata.open({
        url,
        clock: systemClock,
        alarms: new Alarms(systemClock),
        onTakenOver: (detail) => ended.push(detail),
        ...(nodeId !== undefined && { node: { nodeId, ...node } }),
      }),
    );
    return { opening, ended };
  }

  /** Of nobody: no node ends it. */
  async function connection(url: string) {
    const client = await connect({ url, writer: 'nobody', onEnd: () => {} });
    void keep(Promise.resolve({ close: () => client.end() }));
    return client;
  }

  const knows = (metadata: PostgresqlMetadata, count: number) =>
    eventually(
      async () => metadata.membership.nodes().filter(({ state }) => state === 'up').length === count,
    );

  test('two write side by side, and see each other', async () => {
    const url = await newDatabase();
    const [one, two] = await Promise.all([open(url, 'nod-1', true).opening, open(url, 'nod-2').opening]);
    await Promise.all([one.commit([put('of one')]), two.commit([put('of two')])]);
    assert.ok(await one.get("SELECT 1 FROM settings WHERE name = 'of two'"));
    await knows(one, 2);
    const [host, front] = one.membership.nodes();
    assert.deepEqual(
      [host?.nodeId, host?.isHost, host?.url, front?.nodeId, front?.isHost],
      ['nod-1', true, 'http://nod-1:1', 'nod-2', false],
    );
    assert.equal(one.membership.isGone(two.membership.runId), false);
    assert.equal(one.membership.isGone(''), true);
    await two.close();
    await eventually(async () => one.membership.isGone(two.membership.runId));
    assert.equal(one.membership.nodes().find(({ nodeId }) => nodeId === 'nod-2')?.state, 'left');
  });

  test('one that writes alone and nodes refuse each other, as do two hosts and a copied directory', async () => {
    const alone = await newDatabase();
    await open(alone).opening;
    await assert.rejects(open(alone, 'nod-1').opening, /runs alone: set CLOUDLET_NODE_URL there too/);
    const shared = await newDatabase();
    await open(shared, 'nod-1', true).opening;
    await assert.rejects(open(shared).opening, /it is a node of a cluster; set CLOUDLET_NODE_URL/);
    await assert.rejects(open(shared, 'nod-2', true).opening, /set CLOUDLET_COMPUTE=off here/);
    await assert.rejects(open(shared, 'nod-1', true).opening, /this data directory is a copy/);
  });

  test('each lease has one holder, they are spread, and those of a node that ends are taken', async () => {
    const url = await newDatabase();
    const [one, two] = await Promise.all([open(url, 'nod-1').opening, open(url, 'nod-2').opening]);
    await Promise.all([knows(one, 2), knows(two, 2)]);
    const leases = Array.from({ length: 20 }, (_, i) => `lease ${i}`);
    const heldBy = async (metadata: PostgresqlMetadata) => {
      const held = await Promise.all(leases.map((lease) => metadata.membership.holds(lease)));
      return leases.filter((_, i) => held[i]);
    };
    const ofOne = await heldBy(one);
    const ofTwo = await heldBy(two);
    assert.deepEqual([...ofOne, ...ofTwo].sort(), [...leases].sort());
    assert.ok(ofOne.length > 2 && ofTwo.length > 2, `${ofOne.length} and ${ofTwo.length}`);
    await one.membership.drain();
    await eventually(async () => (await heldBy(one)).length === 0);
    await eventually(async () => (await heldBy(two)).length === leases.length);
  });

  test('one that was cut off is ended, stores nothing when it is back, and its lease is free', async () => {
    const url = await newDatabase();
    const proxy = await TcpProxy.to(server().port);
    const cutOff = open(Object.assign(new URL(url), { port: String(proxy.port) }).href, 'nod-1');
    const one = await cutOff.opening;
    const two = await open(url, 'nod-2').opening;
    await Promise.all([knows(one, 2), knows(two, 2)]);
    const lease = await firstHeld(one, 'lease');
    await one.commit([put('before')]);
    proxy.block();
    const changed = assert.rejects(change(one, 'nod-2', 'drained'), { code: 'overloaded' });
    await eventually(async () => !one.membership.isCurrent());
    assert.equal(await one.membership.holds(lease), false);
    await eventually(async () => two.membership.isGone(one.membership.runId));
    await two.commit([put('meanwhile')]);
    await changed;
    proxy.unblock();
    await assert.rejects(one.commit([put('after')]));
    await eventually(async () => cutOff.ended.length === 1);
    assert.match(
      cutOff.ended[0] as string,
      /sent no heartbeat for 10 s, and another node has declared it lost/,
    );
    assert.equal(await two.get("SELECT 1 FROM settings WHERE name = 'after'"), undefined);
    assert.equal(await two.membership.holds(lease), true);
    proxy.close();
  });

  test('one that nobody watched for ten seconds goes on, and trusts nothing before its next beat', async () => {
    const url = await newDatabase();
    const proxy = await TcpProxy.to(server().port);
    const alone = open(Object.assign(new URL(url), { port: String(proxy.port) }).href, 'nod-1');
    const one = await alone.opening;
    proxy.block();
    await sleep(9000);
    const two = await open(url, 'nod-2').opening;
    await knows(two, 2);
    await sleep(2500);
    assert.equal(one.membership.isCurrent(), false);
    proxy.unblock();
    await eventually(async () => one.membership.isCurrent());
    await eventually(() =>
      one.commit([put('after the silence')]).then(
        () => true,
        () => false,
      ),
    );
    assert.deepEqual(alone.ended, []);
    await knows(two, 2);
    proxy.close();
  });

  test('a heartbeat that is answered late moves no clock', async () => {
    const url = await newDatabase();
    const proxy = await TcpProxy.to(server().port);
    const one = await open(Object.assign(new URL(url), { port: String(proxy.port) }).href, 'nod-1').opening;
    const { now } = one.membership.clock(systemClock);
    proxy.block();
    await sleep(2500);
    proxy.unblock();
    const offsets: number[] = [];
    for (let i = 0; i < 30; i++) {
      offsets.push(Math.abs(now() - systemClock.now()));
      await sleep(30);
    }
    assert.ok(Math.max(...offsets) < 300, `${Math.max(...offsets)} ms`);
    proxy.close();
  });

  test('one that is not listed may have joined since the last heartbeat', async () => {
    const one = await open(await newDatabase(), 'nod-1').opening;
    const { now } = one.membership.clock(systemClock);
    assert.equal(one.membership.isGone('new', now()), false);
    assert.equal(one.membership.isGone('old', now() - 60_000), true);
    const joined = now();
    await eventually(async () => one.membership.isGone('new', joined));
  });

  test('a node that is ended while it starts learns it', async () => {
    const url = await newDatabase();
    await (await open(url, 'nod-1').opening).close();
    const [locking, other] = [await connection(url), await connection(url)];
    await locking.query('BEGIN');
    await locking.query('LOCK TABLE settings IN ACCESS EXCLUSIVE MODE');
    const { opening, ended } = open(url, 'nod-1');
    const end = () => other.query("UPDATE store_nodes SET state = 'lost' WHERE state = 'up'");
    await eventually(async () => (await end()).rowCount === 1);
    // Its next heartbeat finds out.
    await sleep(2500);
    await locking.query('COMMIT');
    const node = await opening;
    assert.equal(ended.length, 1);
    await assert.rejects(node.commit([put('after')]));
  });

  test('a node that migrates is no member yet, so no lease waits for it', async () => {
    const url = await newDatabase();
    const one = await open(url, 'nod-1').opening;
    await knows(one, 1);
    const other = await connection(url);
    await other.query('SELECT pg_advisory_lock(2024041808)');
    const second = open(url, 'nod-2');
    await sleep(2500);
    assert.equal(one.membership.nodes().length, 1);
    await other.query('SELECT pg_advisory_unlock(2024041808)');
    await second.opening;
    await knows(one, 2);
  });

  test('the heartbeats of a node go on while the server ends another, however long that takes', async () => {
    const url = await newDatabase();
    const proxy = await TcpProxy.to(server().port);
    const one = await open(Object.assign(new URL(url), { port: String(proxy.port) }).href, 'nod-1').opening;
    const two = await open(url, 'nod-2').opening;
    await knows(two, 2);
    // As a batch that the server does not end.
    const batch = await connection(url);
    await batch.query('BEGIN');
    await batch.query('SELECT FROM store_batches WHERE writer = $1 FOR UPDATE', [one.membership.runId]);
    proxy.block();
    const other = await connection(url);
    const waits = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    await eventually(async () => (await other.query(waits)).rowCount === 1);
    for (let i = 0; i < 10; i++) {
      await sleep(500);
      assert.equal(two.membership.isCurrent(), true);
    }
    assert.equal((await other.query(waits)).rowCount, 1);
    await batch.query('COMMIT');
    await eventually(async () => two.membership.isGone(one.membership.runId));
    proxy.close();
  });

  test('a lease whose work fails goes to another node, and stays where none is left', async () => {
    const url = await newDatabase();
    const [one, two] = await Promise.all([open(url, 'nod-1').opening, open(url, 'nod-2').opening]);
    await Promise.all([knows(one, 2), knows(two, 2)]);
    const [here, there] = [one.membership, two.membership];
    for (const each of [here, there])
      each.report(() => ({ alarms: [], load: null, ports: null, portsSeen: null }));
    const lease = await firstHeld(one, 'lease');
    assert.equal(await there.holds(lease), false);
    here.pass(lease);
    await eventually(async () => !(await here.holds(lease)));
    await eventually(() => there.holds(lease));
    there.pass(lease);
    // Assigned by hash, as computed by both; the other node returns it on request.
    await eventually(async () => !(await there.holds(lease)) && (await here.holds(lease)));
  });

  test('of two nodes that are drained at once one stays up', async () => {
    const url = await newDatabase();
    const [one, two] = await Promise.all([open(url, 'nod-1').opening, open(url, 'nod-2').opening]);
    await Promise.all([knows(one, 2), knows(two, 2)]);
    for (let i = 0; i < 40; i++) {
      const drained = await Promise.all([change(one, 'nod-1', 'drained'), change(two, 'nod-2', 'drained')]);
      assert.deepEqual([...drained].sort(), [false, true], `round ${i}`);
      await Promise.all([change(one, 'nod-1', 'resumed'), change(two, 'nod-2', 'resumed')]);
    }
  });

  test('any node drains and resumes one, forgets one that left, and reads what the others tell', async () => {
    const url = await newDatabase();
    const [one, two] = await Promise.all([open(url, 'nod-1').opening, open(url, 'nod-2').opening]);
    const [here, there] = [one.membership, two.membership];
    await Promise.all([knows(one, 2), knows(two, 2)]);
    assert.equal(await change(one, 'nod-2', 'drained'), true);
    assert.equal(await change(two, 'nod-1', 'drained'), false, 'it knows better than its last beat');
    assert.equal(here.nodes().find(({ nodeId }) => nodeId === 'nod-2')?.state, 'draining');
    await eventually(async () => there.isDraining());
    assert.equal(await there.holds('lease'), false);
    await eventually(() => here.holds('lease'));
    assert.equal(await change(one, 'nod-2', 'forgotten'), false);
    assert.equal(await change(two, 'nod-2', 'resumed'), true);
    assert.equal(there.isDraining(), false);
    const alarms = [{ code: 'out_of_space', detail: 'full', fix: 'free it', since: '2026-01-01 00:00:00' }];
    const load = { uptimeSeconds: 1, cpu: 2, memory: 3, residentBytes: 4 };
    there.report(() => ({ alarms, load, ports: null, portsSeen: null }));
    await eventually(async () => here.nodes().some((node) => node.load !== null));
    assert.deepEqual(here.nodes().find(({ nodeId }) => nodeId === 'nod-2')?.alarms, alarms);
    await two.close();
    await eventually(() => change(one, 'nod-2', 'forgotten'));
    assert.deepEqual(
      here.nodes().map(({ nodeId }) => nodeId),
      ['nod-1'],
    );
    assert.equal(await change(one, 'nod-2', 'resumed'), false);
  });

  test('a node whose connections were lost opens one of each kind, however many ask', async () => {
    const url = await newDatabase();
    const one = await open(url, 'nod-1').opening;
    const two = await open(url, 'nod-2').opening;
    await Promise.all([knows(one, 2), knows(two, 2)]);
    const name = `cloudlet ${one.membership.runId}`;
    const count = async () => {
      const rows = await server().run(`SELECT pid FROM pg_stat_activity WHERE application_name = '${name}'`);
      return rows.length;
    };
    for (let round = 0; round < 3; round++) {
      await server().run(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '${name}'`,
      );
      await eventually(async () => (await count()) === 0);
      // As for jobs, with one lease each.
      const leases = Array.from({ length: 20 }, (_, i) => `lease ${round} ${i}`);
      await Promise.all(leases.map((lease) => one.membership.holds(lease).catch(() => false)));
    }
    await knows(one, 2);
    assert.ok((await count()) <= 1 + 4 + 1, `${await count()} connections`);
  });

  test('a crash of the server ends no node', async () => {
    const url = await newDatabase();
    const nodes = [open(url, 'nod-1'), open(url, 'nod-2')];
    const [one, two] = await Promise.all(nodes.map(({ opening }) => opening));
    await server().crash();
    for (const metadata of [one, two]) {
      await eventually(() =>
        (metadata as PostgresqlMetadata).commit([put(`after ${systemClock.monotonic()}`)]).then(
          () => true,
          () => false,
        ),
      );
    }
    assert.deepEqual(
      nodes.flatMap(({ ended }) => ended),
      [],
    );
  });
});

async function firstHeld(metadata: PostgresqlMetadata, name: string): Promise<string> {
  for (let i = 0; ; i++) if (await metadata.membership.holds(`${name} ${i}`)) return `${name} ${i}`;
}
