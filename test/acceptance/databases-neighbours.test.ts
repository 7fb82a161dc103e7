/** One account abuses its database server: others do not notice. */
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { connect as connectSocket, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createConnection } from 'mysql2/promise';
import pg from 'pg';
import { NO_MARIADB, NO_POSTGRESQL } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';

type Engine = 'postgresql' | 'mysql';

interface Session {
  query(sql: string): Promise<unknown>;
  close(): void;
}

interface Tenant {
  readonly user: Client;
  readonly path: string;
  readonly uri: string;
  readonly port: number;
  readonly username: string;
  readonly open: () => Promise<Session>;
}

let cloud: CloudProcess;
before(async () => {
  cloud = await CloudProcess.start();
});
after(() => cloud?.stop());

async function openSession(engine: Engine, uri: string): Promise<Session> {
  if (engine === 'mysql') {
    const driver = await createConnection(uri);
    driver.on('error', () => {});
    return { query: (sql) => driver.query(sql), close: () => driver.destroy() };
  }
  const client = new pg.Client({ connectionString: uri, connectionTimeoutMillis: 60_000 });
  client.on('error', () => {});
  // end() would wait for a server that was stopped meanwhile.
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
  await client.connect().catch((error: unknown) => {
    stream.destroy();
    throw error;
  });
  return { query: (sql) => client.query(sql), close: () => stream.destroy() };
}

async function newTenant(engine: Engine): Promise<Tenant> {
  const user = await new Client(cloud.api).newUser();
  const made = await user.call('/api/databases', { json: { name: 'shop', engine } });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const { uri, port, username } = made.body.connection;
  const path = `/api/databases/${made.body.database_id}`;
  return { user, path, uri, port, username, open: () => openSession(engine, uri) };
}

/** Uses its database continuously, with a permanent session, new ones and the API. */
class Victim {
  readonly failures: string[] = [];
  rounds = 0;
  #isOver = false;
  readonly #running: Promise<void>;

  constructor(tenant: Tenant, session: Session) {
    this.#running = this.#run(tenant, session);
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }

  async #run({ user, path, open }: Tenant, session: Session): Promise<void> {
    for (; !this.#isOver; this.rounds++) {
      await this.#note('its session', () => session.query('INSERT INTO t VALUES (1)'));
      await this.#note('a new session', async () => {
        const other = await open();
        await other.query('SELECT COUNT(*) FROM t').finally(() => other.close());
      });
      await this.#note('the API', async () => {
        const answer = await user.call(`${path}/query`, { json: { statement: 'SELECT 1' } });
        if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
      });
      await sleep(20);
    }
  }

  async #note(what: string, work: () => Promise<unknown>): Promise<void> {
    await work().catch((error: Error) => this.failures.push(`${what}: ${error.message}`));
  }
}

/** Runs it this many times in parallel; its own failures are ignored. */
async function many(times: number, work: (at: number) => Promise<unknown>): Promise<void> {
  await Promise.allSettled(Array.from({ length: times }, (_, at) => work(at)));
}

function startUp(user: string, database: string): Buffer {
  const words = Buffer.from(`user\0${user}\0database\0${database}\0\0`);
  const head = Buffer.alloc(8);
  head.writeInt32BE(words.length + 8, 0);
  head.writeInt32BE(196_608, 4);
  return Buffer.concat([head, words]);
}

/** Unauthenticated clients that connect and then send nothing. */
async function strangers(port: number, count: number, words?: Buffer): Promise<Socket[]> {
  const sockets: Socket[] = [];
  for (let at = 0; at < count; at++) {
    const socket = connectSocket(port, '127.0.0.1', () => (words ? socket.write(words) : undefined));
    socket.on('error', () => {});
    sockets.push(socket);
    if (at % 40 === 39) await sleep(20);
  }
  return sockets;
}

type Attack = (attacker: Tenant, victim: Tenant, held: Session[]) => Promise<unknown>;

const ATTACKS: Readonly<Record<Engine, Readonly<Record<string, Attack>>>> = {
  postgresql: {
    'takes all locks': async ({ open }, _victim, held) => {
      const session = await open();
      held.push(session);
      await session.query('SELECT pg_advisory_lock(g) FROM generate_series(1, 21000) g').catch(() => {});
    },
    'takes all connections': ({ open }, _victim, held) => many(230, async () => held.push(await open())),
    'writes temporary files and prepares statements': ({ open }) =>
      many(4, async () => {
        const session = await open();
        await session.query("SET work_mem = '64kB'");
        await session.query(
          "SELECT count(*) FROM (SELECT repeat('x', 8000) || g FROM generate_series(1, 20000) g ORDER BY 1) x",
        );
        session.close();
      }),
    'lets strangers connect to the server of another, silently and by a name': async (_attacker, victim) => {
      const words = startUp(victim.username, victim.username.replace('u_', 'd_'));
      const all = [...(await strangers(victim.port, 196, words)), ...(await strangers(victim.port, 200))];
      await sleep(3000);
      for (const socket of all) socket.destroy();
    },
  },
  mysql: {
    'takes all memory': ({ open }, _victim, held) =>
      many(20, async () => {
        const session = await open();
        held.push(session);
        await session.query("SET @v = REPEAT('x', 60000000)");
      }),
    'takes all prepared statements': ({ open }) =>
      many(2, async () => {
        const session = await open();
        for (let at = 0; at < 9000; at++) await session.query(`PREPARE s${at} FROM 'SELECT 1'`);
        session.close();
      }),
    'leaves transactions behind': async ({ open }, _victim, held) => {
      // Its server may be restarting.
      const session = await eventually('its server', () => open().catch(() => null));
      held.push(session);
      for (const sql of ["XA START 'x'", 'INSERT INTO t VALUES (2)', "XA END 'x'", "XA PREPARE 'x'"])
        await session.query(sql).catch(() => {});
    },
    'lets strangers connect to the server of another': async (_attacker, victim) => {
      const all = await strangers(victim.port, 400);
      await sleep(3000);
      for (const socket of all) socket.destroy();
    },
  },
};

/** Holds all available locks, or all memory, and does not end. */
const STUCK = {
  postgresql: 'SELECT pg_advisory_lock(g), pg_sleep(60) FROM generate_series(1, 21000) g',
  mysql: "SELECT SLEEP(60), REPEAT('x', 60000000)",
};
const IS_THERE = (name: string) => globSync(`build/programs/${name}-*/usr`).length > 0;
const SKIP = {
  postgresql: IS_THERE('postgresql') ? false : NO_POSTGRESQL,
  mysql: IS_THERE('mariadb') ? false : NO_MARIADB,
};

for (const engine of ['postgresql', 'mysql'] as const)
  describe(`an account that attacks its ${engine}`, { skip: SKIP[engine] }, () => {
    let attacker: Tenant;
    let victim: Tenant;
    let session: Session;
    before(async () => {
      [attacker, victim] = [await newTenant(engine), await newTenant(engine)];
      for (const { open } of [attacker, victim]) {
        session = await open();
        await session.query('CREATE TABLE t (a int)');
      }
    });
    after(() => session?.close());

    for (const [what, attack] of Object.entries(ATTACKS[engine]))
      test(`it ${what}: its neighbour has no failure, and a dump`, async () => {
        const using = new Victim(victim, session);
        const held: Session[] = [];
        try {
          await attack(attacker, victim, held);
          const before = using.rounds;
          await eventually('the neighbour goes on', () => using.rounds > before + 3);
          const dump = await victim.user.fetch(`${victim.path}/dump`);
          assert.match(await dump.text(), /CREATE TABLE/);
        } finally {
          await using.end();
          for (const one of held) one.close();
        }
        assert.deepEqual(using.failures, []);
      });

    test('it is suspended in the middle of it, is told so, and comes back with all it had', async () => {
      const held = await attacker.open();
      const { id } = (await attacker.user.call('/api/account')).body;
      const admin = new Client(cloud.api, ADMIN_KEY);
      const stuck = held.query(STUCK[engine]).catch(() => 'ended');
      await sleep(100);
      const accounts = `/api/admin/accounts/${id}`;
      assert.equal((await admin.call(`${accounts}/suspend`, { json: { reason: 'attacks' } })).status, 200);
      assert.equal(await stuck, 'ended');
      // Its server ends first, then its listener notices.
      await eventually('it is told so', () =>
        attacker.open().then(
          (session) => session.close(),
          ({ message }) => /databases of this account are closed/.test(message),
        ),
      );
      const other = await victim.open();
      await other.query('SELECT COUNT(*) FROM t');
      other.close();
      assert.equal((await admin.call(`${accounts}/resume`, { method: 'POST' })).status, 200);
      const again = await eventually('it is back', () => attacker.open().catch(() => null));
      await again.query('SELECT COUNT(*) FROM t');
      again.close();
    });

    test('it is restarted, and its databases are as they were', async () => {
      const restarted = await attacker.user.call(`${attacker.path}/restart`, { method: 'POST' });
      assert.equal(restarted.status, 200, JSON.stringify(restarted.body));
      const again = await attacker.open();
      await again.query('SELECT COUNT(*) FROM t');
      again.close();
    });

    test('it is deleted, whatever it left behind', async () => {
      const answer = await attacker.user.call(`${attacker.path}?keep=false`, { method: 'DELETE' });
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      await eventually('nobody answers', () =>
        attacker.open().then(
          () => false,
          () => true,
        ),
      );
    });
  });
