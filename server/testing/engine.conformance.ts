/**
 * Requirements for any database Engine, tested with the users' own driver. The test of an engine calls this
 * with a function that opens one.
 */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Engine,
  type EngineDatabase,
  LoadFailed,
  type Query,
  QueryFailed,
} from '../databases/engine.ts';
import { randomBase62 } from '../platform/ids.ts';
import { eventually } from './eventually.ts';
import { newDatabase } from './new-database.ts';

const MIB = 2 ** 20;
const WRITERS = 16;
const NOBODY_LEAVES = new AbortController().signal;

/** A connection of the driver, with a table or collection of notes. */
export interface NotesClient {
  /** Creates it if it does not exist. */
  prepare(): Promise<void>;
  /** Resolves when the engine has acknowledged it. */
  add(note: string): Promise<void>;
  /** In the order of their text. */
  notes(): Promise<string[]>;
  clear(): Promise<void>;
  close(): Promise<void>;
}

export interface EngineFixture {
  readonly engine: Engine;
  connect(database: EngineDatabase, password: string): Promise<NotesClient>;
  /** Kills, with SIGKILL, the process that has the database open; null: the process is not ours. */
  readonly crash: ((database: EngineDatabase) => Promise<void>) | null;
  close(): Promise<void>;
  /** Whether the engine itself refuses writes beyond a size limit; otherwise it only measures. */
  readonly holdsSize: boolean;
  readonly statements: {
    /** This many rows of one column `n`, from 1. */
    readonly count: (rows: number) => Query['statement'];
    readonly addNote: Query['statement'];
    readonly wrong: Query['statement'];
    readonly endless: Query['statement'];
  };
}

interface Given {
  readonly fixture: EngineFixture;
  readonly database: EngineDatabase;
  readonly password: string;
  readonly client: NotesClient;
}

/** Registers the tests. `open` is called once. */
export function testEngine(name: string, open: () => Promise<EngineFixture>): void {
  describe(`${name} as Engine`, () => {
    let fixture: EngineFixture;
    before(async () => {
      fixture = await open();
      await fixture.engine.prepare();
    });
    after(() => fixture.close());

    /** A new database with an empty table of notes. */
    const given = async (sizeLimitBytes = 64 * MIB): Promise<Given> => {
      const database = newDatabase({ sizeLimitBytes });
      const password = randomBase62(24);
      await fixture.engine.provision(database, password);
      const client = await fixture.connect(database, password);
      await client.prepare();
      return { fixture, database, password, client };
    };
    testLife(given);
    testUse(given);
    testLimits(given);
    testQueries(given);
    testBounds(given);
    testCopies(given);
  });
}

type Give = (sizeLimitBytes?: number) => Promise<Given>;

function testLife(given: Give): void {
  test('every step done twice leaves what doing it once leaves', async () => {
    const { fixture, database, password, client } = await given();
    const { engine } = fixture;
    await client.add('kept');
    await engine.prepare();
    await engine.provision(database, password);
    const next = randomBase62(24);
    for (let time = 0; time < 2; time++) {
      await engine.rotate(database, next);
      await engine.restrict(database, 'full');
    }
    const again = await fixture.connect(database, next);
    assert.deepEqual(await again.notes(), ['kept']);
    assert.ok((await engine.list()).includes(database.database));
    for (let time = 0; time < 2; time++) await engine.drop(database.database);
    assert.ok(!(await engine.list()).includes(database.database));
  });

  test('a dropped database that is made again is empty', async () => {
    const { fixture, database, client } = await given();
    await client.add('old');
    await fixture.engine.drop(database.database);
    await fixture.engine.provision(database, 'new');
    const again = await fixture.connect(database, 'new');
    await again.prepare();
    assert.deepEqual(await again.notes(), []);
  });

  test('databases see nothing of each other', async () => {
    const [one, other] = [await given(), await given()];
    await one.client.add('mine');
    assert.deepEqual(await other.client.notes(), []);
    await one.fixture.engine.drop(other.database.database);
    assert.deepEqual(await one.client.notes(), ['mine']);
  });
}

function testUse(given: Give): void {
  test('every acknowledged note is there after a crash under writers, and none twice', async () => {
    const { fixture, database, password, client } = await given();
    await client.add('first');
    const acknowledged: string[] = ['first'];
    let isOver = false;
    const write = async (writer: number) => {
      for (let i = 0; !isOver; i++) {
        const note = `${writer}-${i}`;
        await client.add(note).then(
          () => acknowledged.push(note),
          () => {},
        );
      }
    };
    const writers = Array.from({ length: WRITERS }, (_, writer) => write(writer));
    for (let crashes = 1; crashes <= 3; crashes++) {
      await eventually(() => acknowledged.length > crashes * 40);
      await fixture.crash?.(database);
    }
    isOver = true;
    await Promise.all(writers);
    let tries = 0;
    await eventually(() =>
      client.add(`last-${++tries}`).then(
        () => true,
        () => false,
      ),
    );
    // A session that outlived the main process briefly may have answered.
    const reader = await fixture.connect(database, password);
    const notes = await eventually(() => reader.notes().catch(() => null));
    assert.equal(new Set(notes).size, notes.length);
    const there = new Set(notes);
    assert.deepEqual(
      acknowledged.filter((note) => !there.has(note)),
      [],
    );
  });

  test('it measures what there is, and says which databases were used', async () => {
    const { fixture, database, client } = await given();
    // Some engines check for activity only periodically.
    const isActive = () => fixture.engine.takeActive().includes(database.databaseId);
    await eventually(() => !isActive());
    await client.add('x'.repeat(MIB));
    await eventually(isActive);
    await eventually(() => !isActive());
    await eventually(async () => (await fixture.engine.measure(database)).sizeBytes > MIB);
  });
}

function testLimits(given: Give): void {
  test('read only takes no growth, but deletes, and full takes it again', async () => {
    const { fixture, database, client } = await given();
    await client.add('before');
    for (let time = 0; time < 2; time++) await fixture.engine.restrict(database, 'read_only');
    await assert.rejects(client.add('x'.repeat(MIB)));
    assert.deepEqual(await client.notes(), ['before']);
    await client.clear();
    await fixture.engine.restrict(database, 'full');
    await client.add('after');
    assert.deepEqual(await client.notes(), ['after']);
  });

  test('no access ends what is open, and lets nobody in', async () => {
    const { fixture, database, password, client } = await given();
    await client.add('kept');
    for (let time = 0; time < 2; time++) await fixture.engine.restrict(database, 'none');
    await assert.rejects(client.notes());
    await fixture.engine.restrict(database, 'full');
    assert.deepEqual(await (await fixture.connect(database, password)).notes(), ['kept']);
  });

  test('beyond its size limit nothing is written, what is there stays, and a higher limit helps', async (t) => {
    const { fixture, database, client } = await given(2 * MIB);
    if (!fixture.holdsSize) return t.skip('this engine measures');
    await client.add('small');
    await assert.rejects(client.add('x'.repeat(3 * MIB)));
    assert.deepEqual(await client.notes(), ['small']);
    await fixture.engine.restrict({ ...database, sizeLimitBytes: 16 * MIB }, 'full');
    await client.add('x'.repeat(3 * MIB));
    assert.equal((await client.notes()).length, 2);
  });
}

const query = (statement: Query['statement'], more: Partial<Query> = {}): Query => ({
  statement,
  params: [],
  readOnly: true,
  maxRows: 100,
  maxBytes: MIB,
  timeoutMs: 8000,
  signal: NOBODY_LEAVES,
  ...more,
});

function testQueries(given: Give): void {
  test('a query gives columns and rows, up to its bounds', async () => {
    const { fixture, database } = await given();
    const { count } = fixture.statements;
    const ask = (more?: Partial<Query>) => fixture.engine.query(database, query(count(10), more));
    const whole = await ask();
    assert.deepEqual(
      whole.columns.toJSON().map(({ name }) => name),
      ['n'],
    );
    assert.deepEqual(whole.rows.toJSON().slice(0, 2), [[1], [2]]);
    assert.deepEqual([whole.rowCount, whole.truncated, whole.affected], [10, false, null]);
    const [few, exact, small] = [
      await ask({ maxRows: 3 }),
      await ask({ maxRows: 10 }),
      await ask({ maxBytes: 20 }),
    ];
    assert.deepEqual([few.rowCount, few.truncated], [3, true]);
    assert.deepEqual([exact.rowCount, exact.truncated], [10, false]);
    assert.ok(small.truncated && small.rowCount < 10);
  });

  test('columns and rows are JSON as JavaScript writes it', async () => {
    const { fixture, database } = await given();
    const ask = query(fixture.statements.count(900), { maxRows: 1000 });
    const { columns, rows, rowCount } = await fixture.engine.query(database, ask);
    const [column, ...others] = columns.toJSON();
    assert.deepEqual([Object.keys(column ?? {}), others.length], [['name', 'type'], 0]);
    for (const text of [columns, rows]) assert.equal(String(text), JSON.stringify(text.toJSON()));
    assert.deepEqual([rowCount, rows.toJSON().length, rows.toJSON()[899]], [900, 900, [900]]);
  });

  test('only a query that may write writes', async () => {
    const { fixture, database, client } = await given();
    const { addNote } = fixture.statements;
    await assert.rejects(fixture.engine.query(database, query(addNote)), QueryFailed);
    assert.deepEqual(await client.notes(), []);
    const { affected } = await fixture.engine.query(database, query(addNote, { readOnly: false }));
    assert.equal(affected, 1);
    assert.equal((await client.notes()).length, 1);
  });

  test('a wrong statement gives the own error of the engine', async () => {
    const { fixture, database } = await given();
    await assert.rejects(
      fixture.engine.query(database, query(fixture.statements.wrong)),
      (error) => error instanceof QueryFailed && error.engineCode !== '' && error.message !== '',
    );
  });

  test('its tables are described', async () => {
    const { fixture, database, client } = await given();
    await client.add('one');
    const tables = await fixture.engine.tables(database, NOBODY_LEAVES);
    assert.deepEqual(
      tables.toJSON().map(({ name }) => name),
      ['notes'],
    );
  });
}

function testBounds(given: Give): void {
  test('a query that does not end is stopped, by its time or when its caller leaves; a neighbour goes on', async () => {
    const [{ fixture, database, client }, other] = [await given(), await given()];
    const { endless } = fixture.statements;
    await client.add('kept');
    const caller = new AbortController();
    const late = fixture.engine.query(database, query(endless, { timeoutMs: 700 }));
    const isOver = assert.rejects(late, { code: 'query_timeout' });
    for (let i = 0; i < 10; i++) await other.client.add(String(i));
    await isOver;
    const left = fixture.engine.query(database, query(endless, { signal: caller.signal }));
    const isLeft = assert.rejects(left);
    for (let i = 10; i < 20; i++) await other.client.add(String(i));
    caller.abort();
    await isLeft;
    assert.equal((await other.client.notes()).length, 20);
    assert.deepEqual(await client.notes(), ['kept']);
  });

  test('a query whose process ends says so, and not that it ran for too long', async (t) => {
    const { fixture, database, client } = await given();
    const { crash } = fixture;
    if (crash === null) return t.skip('the process is not ours');
    let isOver = false;
    const ends = assert
      .rejects(fixture.engine.query(database, query(fixture.statements.endless, { timeoutMs: 600_000 })), {
        code: 'engine_unavailable',
      })
      .finally(() => {
        isOver = true;
      });
    // The first crash, unless the query has not begun yet.
    while (!isOver) {
      await Promise.race([ends, sleep(1000)]);
      if (!isOver) await crash(database);
    }
    await ends;
    // It recovers automatically, also for databases that are created next.
    await eventually(() => client.notes().catch(() => null));
  });
}

function testCopies(given: Give): void {
  const dumpOf = async ({ fixture, database }: Given) => {
    const [format = ''] = fixture.engine.dumpFormats;
    return buffer((await fixture.engine.dump(database, format, { signal: NOBODY_LEAVES })).stream);
  };

  test('a dump taken while others write is as of one moment, and can be loaded', async () => {
    const [source, target] = [await given(), await given()];
    await target.client.add('goes away');
    let added = 0;
    let isOver = false;
    const write = async (writer: number) => {
      for (; !isOver; added++) await source.client.add(`${writer}`);
    };
    const writers = Array.from({ length: WRITERS }, (_, writer) => write(writer));
    await eventually(() => added > 50);
    const least = added;
    const dump = await dumpOf(source);
    const most = added + WRITERS;
    isOver = true;
    await Promise.all(writers);
    for (let time = 0; time < 2; time++) {
      await target.fixture.engine.load(target.database, Readable.from([dump]), { signal: NOBODY_LEAVES });
    }
    const { length } = await target.client.notes();
    assert.ok(length >= least && length <= most, `${least} <= ${length} <= ${most}`);
    await target.client.add('goes on');
  });

  test('a database that nobody may use is dumped and stays closed', async () => {
    const [closed, target] = [await given(), await given()];
    await closed.client.add('kept');
    await closed.fixture.engine.restrict(closed.database, 'none');
    const dump = await dumpOf(closed);
    await assert.rejects(closed.client.add('refused'));
    await target.fixture.engine.load(target.database, Readable.from([dump]), { signal: NOBODY_LEAVES });
    assert.deepEqual(await target.client.notes(), ['kept']);
  });

  test('what cannot be loaded leaves what is there', async () => {
    const there = await given();
    await there.client.add('kept');
    const dump = await dumpOf(there);
    const bad = [Buffer.alloc(0), Buffer.from('no dump at all\n'), dump.subarray(0, dump.length / 2)];
    for (const bytes of bad) {
      await assert.rejects(
        there.fixture.engine.load(there.database, Readable.from([bytes]), { signal: NOBODY_LEAVES }),
        LoadFailed,
      );
    }
    const broken = Readable.from(
      (async function* () {
        yield dump.subarray(0, 100);
        throw new Error('the caller left');
      })(),
    );
    await assert.rejects(there.fixture.engine.load(there.database, broken, { signal: NOBODY_LEAVES }));
    assert.deepEqual(await there.client.notes(), ['kept']);
  });

  test('a fork has what its source has, and neither sees what the other does from then on', async () => {
    const [source, fork] = [await given(), await given()];
    await source.client.add('both');
    await source.fixture.engine.fork(source.database, fork.database, NOBODY_LEAVES);
    await source.client.add('source');
    await fork.client.add('fork');
    assert.deepEqual(await source.client.notes(), ['both', 'source']);
    assert.deepEqual(await fork.client.notes(), ['both', 'fork']);
  });
}
