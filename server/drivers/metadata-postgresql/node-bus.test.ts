import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { Authenticator } from '../../accounts/sign-in/authenticator.ts';
import { AccountStore } from '../../accounts/store.ts';
import { Ages, MAX_AGE_MS } from '../../metadata/ages.ts';
import { Bus, type Forgotten, type Told } from '../../metadata/bus.ts';
import { BACKGROUND, Changes } from '../../metadata/change.ts';
import type { ResourceChange } from '../../metadata/metadata.ts';
import { Alarms } from '../../platform/alarms.ts';
import { systemClock } from '../../platform/clock.ts';
import { isAppError } from '../../platform/errors.ts';
import { openAccountFixture } from '../../testing/account-fixture.ts';
import { eventually } from '../../testing/eventually.ts';
import { operatorPostgresql } from '../../testing/operator-postgresql.ts';
import type { OperatorServer } from '../../testing/operator-server.ts';
import { noPostgresql } from '../../testing/postgresql-fixture.ts';
import { NodeBus } from './node-bus.ts';
import { PostgresqlMetadata } from './postgresql-metadata.ts';

const PRICE: Forgotten = { kind: 'price', id: '' };
const change = (id: string, accountId: number | null = 1): ResourceChange => ({ accountId, kind: 'vm', id });
const LOST: Told = { forgets: null, changes: null };

describe('messages between nodes', { skip: noPostgresql }, () => {
  let server: OperatorServer;
  let url: string;
  before(async () => {
    server = await operatorPostgresql();
    url = server.url('postgres', 'of-the-operator');
  });
  after(() => server?.close());

  const open: NodeBus[] = [];
  afterEach(async () => {
    for (const bus of open.splice(0)) await bus.close();
  });

  /** A node that listens, and its received messages. */
  async function node(nodeId: string) {
    const heard: Told[] = [];
    const bus = NodeBus.open({ url, runId: nodeId, receive: (told) => void heard.push(told) });
    open.push(bus);
    await eventually(async () => bus.isListening);
    heard.length = 0;
    return { bus, heard };
  }

  const twoNodes = () => Promise.all([node('one'), node('two')]);
  const cut = (nodeId: string) =>
    server.run(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'cloudlet ${nodeId}'`,
    );

  test('what changed is told once, in one message, to others alone', async () => {
    const [one, two] = await twoNodes();
    for (let i = 0; i < 3; i++) {
      one.bus.forgets({ kind: 'account', id: 7 });
      one.bus.forgets({ kind: 'credential', id: 'key-ä' });
      one.bus.changed(change('vm-1'));
      one.bus.changed(change('vm-2', null));
    }
    await eventually(async () => two.heard.length > 0);
    const forgets = [
      { kind: 'account', id: 7 },
      { kind: 'credential', id: 'key-ä' },
    ];
    assert.deepEqual(two.heard, [{ forgets, changes: [change('vm-1'), change('vm-2', null)] }]);
    two.bus.forgets(PRICE);
    await eventually(async () => one.heard.length > 0);
    assert.deepEqual(one.heard, [{ forgets: [PRICE], changes: [] }]);
    assert.equal(two.heard.length, 1);
  });

  test('more than a message holds is told as lost, changes of resources first', async () => {
    const [one, two] = await twoNodes();
    one.bus.forgets(PRICE);
    for (let i = 0; i < 450; i++) one.bus.changed(change(`vm-${i}-with-a-name-of-some-length`));
    await eventually(async () => two.heard.length === 1);
    assert.deepEqual(two.heard.pop(), { forgets: [PRICE], changes: null });
    for (let i = 0; i < 450; i++) one.bus.forgets({ kind: 'credential', id: `key-${i}-of-some-length` });
    one.bus.changed(change('vm-1'));
    await eventually(async () => two.heard.length === 1);
    assert.deepEqual(two.heard.pop(), LOST);
    for (let i = 0; i < 100_000; i++) one.bus.changed(change(`vm-${i}`));
    await eventually(async () => two.heard.length === 1);
    assert.deepEqual(two.heard.pop(), { forgets: [], changes: null });
  });

  test('a connection that was lost is opened again, and everything counts as changed at both ends', async () => {
    const [one, two] = await twoNodes();
    await cut('two');
    await eventually(async () => two.heard.length > 0 && two.bus.isListening);
    assert.deepEqual(two.heard, [LOST]);
    assert.equal(one.heard.length, 0);
    // A message that one node cannot send is reported to the other as lost.
    await cut('one');
    await eventually(async () => !one.bus.isListening);
    one.bus.forgets(PRICE);
    await eventually(async () => two.heard.length > 1);
    await eventually(async () => one.bus.isListening);
    one.bus.changed(change('vm-1'));
    await eventually(async () => two.heard.at(-1)?.changes?.length === 1);
  });

  test('a text that is no message of ours counts as lost', async () => {
    const two = await node('two');
    await server.run("NOTIFY cloudlet_changes, 'what is this'; NOTIFY cloudlet_changes, 'null'");
    await eventually(async () => two.heard.length === 2);
    assert.deepEqual(two.heard, [LOST, LOST]);
  });

  test('the last words of a node are sent', async () => {
    const [one, two] = await twoNodes();
    one.bus.forgets(PRICE);
    await one.bus.close();
    await eventually(async () => two.heard.length === 1);
  });

  test('a server that is away ends nothing, and is found again', async () => {
    const [one, two] = await twoNodes();
    await server.crash();
    one.bus.forgets(PRICE);
    await eventually(async () => one.bus.isListening && two.bus.isListening);
    two.heard.length = 0;
    one.bus.forgets({ kind: 'account', id: 1 });
    await eventually(async () => two.heard.some(({ forgets }) => forgets?.some(({ id }) => id === 1)));
  });

  test('a key that one node ends is refused by another, in 2 s also where nothing is told', async () => {
    const joined = (nodeId: string) =>
      PostgresqlMetadata.open({
        url,
        clock: systemClock,
        alarms: new Alarms(systemClock),
        onTakenOver: assert.fail,
        node: { nodeId, name: nodeId, url: `http://${nodeId}:1`, version: '1', isHost: false },
      });
    const one = await openAccountFixture({ openMetadata: () => joined('nod-1') });
    const metadata = await joined('nod-2');
    try {
      const { clock, sealer } = one;
      const bus = new Bus();
      const authenticator = new Authenticator({
        store: new AccountStore({ reads: metadata }),
        changes: new Changes({ metadata, bus }),
        bus,
        ages: new Ages({ membership: metadata.membership, clock }),
        clock,
        sealer,
      });
      const register = async (username: string) => {
        const fields = { username, email: `${username}@example.com`, password: 'a good password' };
        const { id, api_key: key } = await one.accounts.register(BACKGROUND, fields);
        const apiKey = key ?? '';
        const principal = await authenticator.authenticate({ apiKey });
        const rotate = async () =>
          one.changes.run(BACKGROUND, (change) => {
            change.add(one.store.deleteMainKeys(id));
            change.forgets({ kind: 'account', id });
          });
        return { principal, use: async () => authenticator.authenticate({ apiKey }), rotate };
      };
      const refused = async (use: () => Promise<unknown>) =>
        use().then(
          () => false,
          (error) => isAppError(error, 'invalid_api_key'),
        );

      const untold = await register('untold');
      await untold.rotate();
      assert.equal(await untold.use(), untold.principal, 'nobody has told it yet');
      clock.advance(MAX_AGE_MS);
      assert.ok(await refused(untold.use));

      const told = await register('told');
      const links = [
        NodeBus.open({ url, runId: 'of-one', receive: one.bus.receive.bind(one.bus) }),
        NodeBus.open({ url, runId: 'of-two', receive: bus.receive.bind(bus) }),
      ] as const;
      open.push(...links);
      one.bus.connect(links[0]);
      await eventually(async () => links.every(({ isListening }) => isListening));
      await told.use();
      await told.rotate();
      // The clock stands still: it never refuses because of age.
      await eventually(() => refused(told.use));
    } finally {
      await metadata.close();
      await one.close();
    }
  });
});
