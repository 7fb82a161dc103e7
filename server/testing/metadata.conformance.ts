/** Requirements for any metadata driver. The test of a driver calls this with a function that opens it. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { CommitRejected, type Metadata, type Reads, type SqlValue } from '../metadata/metadata.ts';

export interface MetadataUnderTest {
  /** Opens the same database again after a close. */
  open(): Promise<Metadata>;
  /** Called at the end. */
  end(): Promise<unknown>;
}

const put = (name: string, value: string) => ({
  sql: 'INSERT INTO settings (name, value) VALUES (?, ?)',
  params: [name, value],
});

class Opened {
  readonly #driver: MetadataUnderTest;
  metadata: Metadata;

  constructor(driver: MetadataUnderTest, metadata: Metadata) {
    this.#driver = driver;
    this.metadata = metadata;
  }

  /** After a close. */
  async reopen(): Promise<void> {
    this.metadata = await this.#driver.open();
  }

  async settingOf(name: string): Promise<string | undefined> {
    const sql = 'SELECT value FROM settings WHERE name = ?';
    return (await this.metadata.get<{ value: string }>(sql, name))?.value;
  }

  async end(): Promise<void> {
    await this.metadata.close();
    await this.#driver.end();
  }
}

export function testMetadata(name: string, begin: () => Promise<MetadataUnderTest>): void {
  describe(`${name} as Metadata`, () => {
    let on: Opened;
    before(async () => {
      const driver = await begin();
      on = new Opened(driver, await driver.open());
    });
    after(() => on?.end());
    for (const [title, check] of Object.entries(CHECKS)) test(title, () => check(on));
  });
}

const CHECKS: Readonly<Record<string, (on: Opened) => Promise<void>>> = {
  'a read sees a commit once its promise resolved, however many read meanwhile': async (on) => {
    let isReading = true;
    const read = async () => {
      while (isReading) {
        await on.settingOf('turn');
        await new Promise(setImmediate);
      }
    };
    const reading = Promise.all([read(), read(), read(), read()]);
    await on.metadata.commit([put('turn', '0')]);
    for (let turn = 1; turn <= 50; turn++) {
      const sql = 'UPDATE settings SET value = ? WHERE name = ?';
      await on.metadata.commit([{ sql, params: [String(turn), 'turn'] }]);
      assert.equal(await on.settingOf('turn'), String(turn));
    }
    isReading = false;
    await reading;
  },

  'a commit is all or nothing, and a refused one leaves its neighbours alone': async (on) => {
    const expectNone = { sql: 'DELETE FROM settings WHERE name = ?', params: ['nobody'], expectChanges: 1 };
    const outcomes = await Promise.allSettled([
      on.metadata.commit([put('n1', 'a')]),
      on.metadata.commit([put('lost', 'b'), expectNone, put('never run', 'b')]),
      on.metadata.commit([put('n2', 'c')]),
      on.metadata.commit([put('lost2', 'd'), put('n1', 'again')]),
      on.metadata.commit([put('n3', 'e'), put('n4', 'f')]),
    ]);
    const told = outcomes.map((outcome) => {
      if (outcome.status === 'fulfilled') return 'stored';
      const { reason: error } = outcome;
      return error instanceof CommitRejected ? [error.index, error.reason] : String(error);
    });
    assert.deepEqual(told, ['stored', [1, 'expectation'], 'stored', [1, 'unique'], 'stored']);
    const names = ['n1', 'n2', 'n3', 'n4', 'lost', 'lost2', 'never run'];
    const values = await Promise.all(names.map((name) => on.settingOf(name)));
    assert.deepEqual(values, ['a', 'c', 'e', 'f', undefined, undefined, undefined]);
  },

  'commits of one form are stored in their order, and refused each by itself': async (on) => {
    const names = Array.from({ length: 200 }, (_, i) => `order-${i % 150}`);
    const outcomes = await Promise.allSettled(
      names.map((name, i) => on.metadata.commit([put(name, `${i}`)])),
    );
    const stored = outcomes.map(({ status }) => status === 'fulfilled');
    assert.deepEqual(
      stored,
      names.map((_, i) => i < 150),
    );
    assert.deepEqual([await on.settingOf('order-0'), await on.settingOf('order-149')], ['0', '149']);
    // The second of two changes of one row in a batch sees the first.
    const swap = (from: string, to: string) =>
      on.metadata.commit([
        {
          sql: 'UPDATE settings SET value = ? WHERE name = ? AND value = ?',
          params: [to, 'order-0', from],
          expectChanges: 1,
        },
      ]);
    const swapped = await Promise.allSettled([swap('0', 'a'), swap('a', 'b'), swap('0', 'c')]);
    assert.deepEqual(
      swapped.map(({ status }) => status),
      ['fulfilled', 'fulfilled', 'rejected'],
    );
    assert.equal(await on.settingOf('order-0'), 'b');
  },

  'the reasons of a refusal are told apart': async (on) => {
    const refused = (sql: string, ...params: SqlValue[]) =>
      on.metadata.commit([{ sql, params }]).then(
        () => 'stored',
        (error) => (error instanceof CommitRejected ? error.reason : error.code),
      );
    const bucket =
      'INSERT INTO buckets (account_id,name,region,versioning,encryption,created_at) VALUES (?,?,?,0,0,0)';
    assert.equal(await refused(bucket, 99, 'b', 'r'), 'foreign_key');
    const setting = 'INSERT INTO settings (name, value) VALUES (?, ?)';
    assert.equal(await refused(setting, 'x', null), 'check');
    assert.equal(await refused('INSERT INTO blobs (refs, size_bytes) VALUES (?, 0)', -1), 'check');
    assert.equal(await refused('INSERT INTO no_such_table VALUES (?)', 1), 'internal_error');
    assert.equal(await refused(setting, 'too few'), 'internal_error');
    assert.equal(await refused('DELETE FROM ledger_transfers'), 'stored', 'of no row');
    assert.equal(await refused(setting, 'still works', 'y'), 'stored');
  },

  'of several statements that refuse, the first is the reason': async (on) => {
    const sql = 'UPDATE settings SET value = ? WHERE name = ?';
    const none = { sql, params: ['x', 'none'], expectChanges: 1 };
    const check = { sql: 'INSERT INTO settings (name, value) VALUES (?, ?)', params: ['x', null] };
    const reasonOf = (statements: Parameters<Metadata['commit']>[0]) =>
      on.metadata.commit(statements).catch((error) => [error.index, error.reason]);
    assert.deepEqual(await reasonOf([none, check]), [0, 'expectation']);
    assert.deepEqual(await reasonOf([check, none]), [0, 'check']);
  },

  'RowIdOf stands for the id that an earlier statement of the commit was given': async (on) => {
    const account = (id: number | null, name: string) => ({
      sql: `INSERT INTO accounts (${id === null ? '' : 'id, '}username, email, password_hash, created_at)
              VALUES (${id === null ? '' : '?, '}?, 'e', '', 0)`,
      params: id === null ? [name] : [id, name],
    });
    const bucket = (name: string) => ({
      sql: `INSERT INTO buckets (account_id, name, region, versioning, encryption, created_at)
              VALUES (?, ?, 'r', 0, 0, 0)`,
      params: [{ rowIdOf: 0 }, name],
    });
    await Promise.all([
      on.metadata.commit([account(null, 'first'), bucket('of first')]),
      on.metadata.commit([account(4_000_000, 'second'), bucket('of second')]),
      on.metadata.commit([account(null, 'third'), bucket('of third')]),
    ]);
    const rows = await on.metadata.all<{ username: string; name: string }>(
      `SELECT a.username, b.name FROM buckets b JOIN accounts a ON a.id = b.account_id ORDER BY b.name`,
    );
    assert.deepEqual(
      rows.map(({ username, name }) => `${name}: ${username}`),
      ['of first: first', 'of second: second', 'of third: third'],
    );
    const forward = on.metadata.commit([
      { ...bucket('x'), params: [{ rowIdOf: 1 }, 'x'] },
      account(null, 'x'),
    ]);
    await assert.rejects(forward, { code: 'internal_error' });
  },

  'bytes come back as they went in, also from a part of a larger buffer': async (on) => {
    const large = Buffer.alloc(5000, 1);
    const inputs = [large.subarray(17, 4113), new Uint8Array(0), new Uint8Array([0, 255])];
    const sql = 'INSERT INTO blobs (id, size_bytes, data) VALUES (?, ?, ?)';
    await Promise.all(
      inputs.map((data, i) => on.metadata.commit([{ sql, params: [100 + i, data.length, data] }])),
    );
    const rows = await on.metadata.all<{ data: Buffer }>(
      'SELECT data FROM blobs WHERE id BETWEEN 100 AND 102 ORDER BY id',
    );
    assert.deepEqual(
      rows.map(({ data }) => data),
      inputs.map((input) => Buffer.from(input)),
    );
  },

  'whole numbers are exact on both sides of 2^53, sums too; texts of every kind come back': async (on) => {
    const values = [0, -5, Number.MAX_SAFE_INTEGER, 2n ** 53n + 1n, -(2n ** 63n), 2n ** 63n - 1n];
    const sql = 'INSERT INTO blobs (id, size_bytes) VALUES (?, ?)';
    for (const [i, value] of values.entries()) await on.metadata.commit([{ sql, params: [200 + i, value] }]);
    const rows = await on.metadata.all<{ size_bytes: number | bigint }>(
      'SELECT size_bytes FROM blobs WHERE id BETWEEN 200 AND 205 ORDER BY id',
    );
    assert.deepEqual(
      rows.map(({ size_bytes }) => size_bytes),
      values,
    );
    const sum = await on.metadata.get<object>(
      'SELECT sum(size_bytes) AS sum, count(*) AS n, 1 = 1 AS is_true FROM blobs WHERE id IN (200, 201, 203)',
    );
    assert.deepEqual({ ...sum }, { sum: 2 ** 53 - 4, n: 3, is_true: 1 });
    const texts = ['', 'ä€😀', 'it\'s \\ "quoted"', '{a,"b"}', 'NULL', ' \t\n'];
    await Promise.all(texts.map((text, i) => on.metadata.commit([put(`text-${i}`, text)])));
    assert.deepEqual(await Promise.all(texts.map((_, i) => on.settingOf(`text-${i}`))), texts);
  },

  'a text with U+0000 is stored as it is, or refused as a whole': async (on) => {
    const neighbour = on.metadata.commit([put('beside-nul', 'x')]);
    const outcome = await on.metadata.commit([put('before-nul', 'x'), put('nul', 'a\0b')]).then(
      () => 'stored',
      (error) => error.code,
    );
    await neighbour;
    assert.equal(await on.settingOf('no such\0name'), undefined);
    const seen = [outcome, await on.settingOf('nul'), await on.settingOf('before-nul')];
    const isStored = outcome === 'stored';
    assert.deepEqual(seen, isStored ? ['stored', 'a\0b', 'x'] : ['invalid_request', undefined, undefined]);
    assert.equal(await on.settingOf('beside-nul'), 'x');
  },

  'texts are ordered by their bytes': async (on) => {
    const names = ['sort-b', 'sort-B', 'sort-a', 'sort-ä', 'sort-_', 'sort-😀', 'sort-～'];
    await Promise.all(names.map((name) => on.metadata.commit([put(name, '')])));
    const rows = await on.metadata.all<{ name: string }>(
      `SELECT name FROM settings WHERE name >= 'sort-' AND name < 'sort.' ORDER BY name`,
    );
    const sorted = names.map((name) => Buffer.from(name)).sort(Buffer.compare);
    assert.deepEqual(
      rows.map(({ name }) => name),
      sorted.map(String),
    );
  },

  'more SQL texts than are kept in mind still work': async (on) => {
    const texts = Array.from(
      { length: 1200 },
      (_, i) => `INSERT INTO settings (name, value) VALUES (?, 'v${i}')`,
    );
    await Promise.all(texts.map((sql, i) => on.metadata.commit([{ sql, params: [`one-${i}`] }])));
    await Promise.all(texts.map((sql, i) => on.metadata.commit([{ sql, params: [`two-${i}`] }])));
    assert.equal(await on.settingOf('one-1199'), 'v1199');
    assert.equal(await on.settingOf('two-3'), 'v3');
  },

  'functions that statements use': async (on) => {
    const row = await on.metadata.get<object>(
      `SELECT instr('a/b', '/') AS at, instr('ab', '/') AS nowhere, octet_length('ä') AS bytes,
           json_extract('{"file":"f"}', '$.file') AS file`,
    );
    assert.deepEqual({ ...row }, { at: 2, nowhere: 0, bytes: 2, file: 'f' });
    const each = (text: string) =>
      on.metadata.all<{ key: string; n: number }>(
        'SELECT key, CAST(value AS BIGINT) AS n FROM json_each(?) ORDER BY n',
        text,
      );
    assert.deepEqual(
      (await each('[7,8]')).map(({ n }) => n),
      [7, 8],
    );
    assert.deepEqual(
      (await each('{"x":1,"y":2}')).map(({ key, n }) => [key, n]),
      [
        ['x', 1],
        ['y', 2],
      ],
    );
    await on.metadata.commit([
      {
        sql: "INSERT INTO settings (name, value) SELECT 'sha', sha256_hex(CAST(? AS TEXT))",
        params: ['abc'],
      },
    ]);
    assert.equal(
      await on.settingOf('sha'),
      'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    );
  },

  'what adds up is stored for all commits of a turn, also when one is refused and at a close': async (on) => {
    await on.metadata.commit([{ sql: 'INSERT INTO blobs (id, size_bytes) VALUES (4711, 0)', params: [] }]);
    const count = (amount: number) => ({
      sql: 'UPDATE blobs SET size_bytes = size_bytes + ? WHERE id = 4711',
      params: [amount],
      expectChanges: 1,
      amounts: [0],
    });
    const commits = (names: readonly string[]) =>
      Promise.allSettled(names.map((name, i) => on.metadata.commit([put(name, 'x'), count(10 ** i)])));
    const statuses = (outcomes: readonly { status: string }[]) => outcomes.map(({ status }) => status);
    const sum = async () =>
      (await on.metadata.get<{ n: number }>('SELECT size_bytes AS n FROM blobs WHERE id = 4711'))?.n;
    assert.deepEqual(statuses(await commits(['s1', 's2', 's3'])), Array(3).fill('fulfilled'));
    assert.equal(await sum(), 111);
    const waiting = commits(['s4', 's1', 's5']);
    const closed = on.metadata.close();
    assert.deepEqual(statuses(await waiting), ['fulfilled', 'rejected', 'fulfilled']);
    await closed;
    await on.reopen();
    assert.equal(await sum(), 111 + 101);
  },

  'a check of a limit counts what the same batch adds, each of its commits once': async (on) => {
    await on.metadata.commit([{ sql: 'INSERT INTO blobs (id, size_bytes) VALUES (4712, 0)', params: [] }]);
    const add = (amount: number) => [
      {
        sql: 'UPDATE blobs SET refs = refs WHERE id = 4712 AND size_bytes + ? <= 30',
        params: [amount],
        expectChanges: 1,
        amounts: [0],
      },
      {
        sql: 'UPDATE blobs SET size_bytes = size_bytes + ? WHERE id = 4712',
        params: [amount],
        expectChanges: 1,
        amounts: [0],
      },
    ];
    const outcomes = await Promise.allSettled(Array.from({ length: 5 }, () => on.metadata.commit(add(10))));
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['fulfilled', 'fulfilled', 'fulfilled', 'rejected', 'rejected'],
    );
  },

  'changes of one row in a batch add up, also without an expectation': async (on) => {
    await on.metadata.commit([{ sql: 'INSERT INTO blobs (id, size_bytes) VALUES (4713, 0)', params: [] }]);
    const sql = 'UPDATE blobs SET size_bytes = size_bytes + ? WHERE id = ?';
    await Promise.all([1, 10, 100].map((n) => on.metadata.commit([{ sql, params: [n, 4713] }])));
    const row = await on.metadata.get<{ n: number }>('SELECT size_bytes AS n FROM blobs WHERE id = 4713');
    assert.equal(row?.n, 111);
  },

  'the reads of a snapshot agree, whatever is stored meanwhile': async (on) => {
    await on.metadata.commit([put('agree-a', '0'), put('agree-b', '0')]);
    const sql = 'SELECT value FROM settings WHERE name = ?';
    let isWriting = true;
    const writing = (async () => {
      for (let n = 1; isWriting; n++) {
        const update = 'UPDATE settings SET value = ? WHERE name = ?';
        const to = (name: string) => ({ sql: update, params: [String(n), name] });
        await on.metadata.commit([to('agree-a'), to('agree-b')]);
      }
    })();
    const read = () =>
      on.metadata.snapshot(async (reads) => {
        const first = await reads.get<{ value: string }>(sql, 'agree-a');
        for (let i = 0; i < 20; i++) await new Promise(setImmediate);
        await on.metadata.commit([{ sql: 'DELETE FROM settings WHERE name = ?', params: ['nobody'] }]);
        const rows = await reads.all<{ value: string }>(sql, 'agree-b');
        return [first?.value, rows[0]?.value];
      });
    for (let round = 0; round < 5; round++) {
      for (const [a, b] of await Promise.all([read(), read(), read()])) assert.equal(a, b);
    }
    isWriting = false;
    await writing;
    await on.metadata.commit([put('agree-last', 'x')]);
    const last = await on.metadata.snapshot(async (reads) => reads.get<object>(sql, 'agree-last'));
    assert.deepEqual({ ...last }, { value: 'x' });
  },

  'a snapshot whose work fails is closed; it cannot be written through': async (on) => {
    const failed = on.metadata.snapshot(async () => Promise.reject(new Error('of the work')));
    await assert.rejects(failed, /of the work/);
    const write = on.metadata.snapshot(async (reads) =>
      reads.all("INSERT INTO settings (name, value) VALUES ('no', 'x') RETURNING name"),
    );
    await assert.rejects(write);
    assert.equal(await on.settingOf('no'), undefined);
    let later: Reads | undefined;
    await on.metadata.snapshot(async (reads) => {
      later = reads;
    });
    await assert.rejects(async () => later?.get('SELECT 1 AS one'), { code: 'overloaded' });
  },

  'close stores what waits, and refuses what comes later': async (on) => {
    const waiting = Promise.all(
      Array.from({ length: 300 }, (_, i) => on.metadata.commit([put(`w${i}`, 'x')])),
    );
    const closed = on.metadata.close();
    await assert.rejects(on.metadata.commit([put('late', 'x')]), { code: 'shutting_down' });
    await assert.rejects(async () => on.metadata.get('SELECT 1 AS one'), { code: 'shutting_down' });
    await waiting;
    await closed;
    await on.reopen();
    assert.equal(await on.settingOf('w299'), 'x');
  },
};
