/** Both engines prepare every SQL text of the domains, so that none is valid in one dialect only. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type Database from 'better-sqlite3';
import type pg from 'pg';
import { closeAccount, removeAccount } from '../../accounts/closings-store.ts';
import { InvitationStore } from '../../accounts/invitations/invitations-store.ts';
import { AccountStore } from '../../accounts/store.ts';
import { CatalogStore } from '../../billing/catalog/catalog-store.ts';
import { insertTransfer, LedgerStore } from '../../billing/ledger/ledger-store.ts';
import { UsageStore } from '../../billing/metering/usage-store.ts';
import { OperationsStore } from '../../calls/operations-store.ts';
import { VM_SAMPLES } from '../../compute/metrics/sampler.ts';
import { DATABASE_SAMPLES } from '../../databases/life/sampler.ts';
import { DatabaseStore } from '../../databases/store.ts';
import { increment } from '../../metadata/change.ts';
import type { Reads, Statement } from '../../metadata/metadata.ts';
import { migrate } from '../../metadata/migrate.ts';
import { migrations } from '../../metadata/migrations/migrations.ts';
import { SamplesStore } from '../../metadata/samples-store.ts';
import { SEALED_COLUMNS, SealedColumnsStore } from '../../metadata/secrets/sealed-columns-store.ts';
import { ComparisonStore } from '../../recovery/drill/comparison-store.ts';
import { afterRestore } from '../../recovery/points/restored-store.ts';
import { RecoveryStore } from '../../recovery/store.ts';
import { BrowseSql } from '../../storage/listing/browse-sql.ts';
import { ObjectSql } from '../../storage/objects/object-sql.ts';
import { operatorPostgresql } from '../../testing/operator-postgresql.ts';
import type { OperatorServer } from '../../testing/operator-server.ts';
import { noPostgresql } from '../../testing/postgresql-fixture.ts';
import { isOf, type WrittenSql, writtenSql } from '../../testing/written-statements.ts';
import { openWriter } from '../metadata-sqlite/connection.ts';
import { connect } from './connections.ts';
import { migrateSchema } from './postgresql-schema.ts';
import { insertedRow, numbered, withId } from './sql-texts.ts';

/** Adds to one counter of one row, in any commit. */
const COUNTS = /^\s*UPDATE (\w+)\s+SET (\w+) = \2 [+-] \?\s+WHERE \w+ = \?\s*$/;
/** Balances change in the order of their transfers, which is checked for each. */
const BALANCES = ['accounts', 'billing_accounts'];

const called = new Set<string>();
const reads: Reads = {
  get: (sql) => {
    called.add(sql);
    return undefined;
  },
  all: (sql) => {
    called.add(sql);
    return [];
  },
};
const note = (...statements: readonly Statement[]) => {
  for (const { sql } of statements) called.add(sql);
};

const SPAN = { from: 0, to: 1 };
const TRANSFER = {
  id: 't',
  debit: 'd',
  credit: 'c',
  amountMicro: 1n,
  code: 'x',
  reference: '',
  createdAt: 0,
};
const LINE = { resourceId: 'r', accountId: 1, name: '', variant: '', level: 0, now: 0 };

/** Calls the function that builds a text from its arguments, with each kind of arguments. */
async function callBrowsing(): Promise<void> {
  const browse = new BrowseSql(reads);
  const objects = new ObjectSql(reads);
  for (const isAfter of [true, false]) {
    const from = { name: '', after: isAfter };
    await objects.liveEntries(1, from, 1);
    await objects.listedEntries(1, from, 1);
    await objects.allEntries(1, from, 1);
    await browse.measure(1, from, { end: '', scan: 1 });
    await browse.sizes(1, from, { end: '', scan: 1 });
    await browse.customerEncrypted(1, from, { end: '', scan: 1 });
    await browse.nameInFolder(1, from, { offset: 0, scan: 1 });
    for (const by of ['size', 'created_at'] as const) {
      await browse.keysByName(1, from, { by, limit: 1 });
      await browse.foundKeys(1, from, { by, words: '', scan: 1 });
    }
    for (const order of ['asc', 'desc'] as const) {
      for (const by of ['size', 'created_at'] as const) {
        await browse.beyond(1, 0, { by, order, limit: 1 });
        await browse.equal(1, { key: 0, id: 0 }, { by, order, limit: 1 });
      }
      for (const isDeleted of [true, false]) {
        const view = { bucketId: 1, isDeleted, order };
        await browse.entries(view, from, 1);
        await browse.found(view, from, { words: '', scan: 1, limit: 1 });
        await browse.lastName(view, from, 1);
      }
    }
  }
}

async function callMoney(): Promise<void> {
  const ledger = new LedgerStore(reads);
  await ledger.balanceAfter(1, 1n);
  await ledger.entriesBefore(1, 1n, 1);
  await ledger.revenueOf(SPAN);
  await new CatalogStore(reads).limitsStorage();
  note(
    insertTransfer(TRANSFER),
    insertTransfer({ ...TRANSFER, debit: { rowIdOf: 0 } }),
    insertTransfer({ ...TRANSFER, credit: { rowIdOf: 0 } }),
    new UsageStore(reads).reopen({ ...LINE, meter: 'storage' }),
    new UsageStore(reads).addEgress('database', 'db-1', { bytes: 1, now: 0 }),
    new UsageStore(reads).addEgress('vm', 'vm-1', { bytes: 1, now: 0 }),
    increment({ table: 'buckets', id: 1, add: { size_bytes: 1 } }),
    increment({ table: 'accounts', id: 1, add: { storage_bytes: 1 } }),
  );
}

async function callOthers(): Promise<void> {
  for (const via of ['key', 'session'] as const) {
    await new AccountStore({ reads }).isCredentialGood(via, '', 0);
  }
  for (const reason of [null, 'spam']) note(new AccountStore({ reads }).setSuspended(1, reason));
  note(...closeAccount(1, 0), ...removeAccount(1, 0));
  for (const [running, nodes] of [
    [[], []],
    [['op-1'], ['nod-1']],
  ] as const)
    note(new OperationsStore(reads).deleteOlderThan(0, { running, nodes }));
  for (const credentialId of [undefined, 'key-1']) {
    await new OperationsStore(reads).listBefore(1, { before: '', limit: 1, credentialId });
  }
  for (const seen of [undefined, { at: 0, rows: [] }])
    note(new InvitationStore({ reads }).insert({ id: 'inv-1' } as never, '', seen));
  await new ComparisonStore(reads).tables(['accounts']);
  const databases = new DatabaseStore(reads);
  for (const isKept of [true, false]) await databases.listOf(1, isKept, { after: 0, limit: 1 });
  note(databases.countKept(1, 0), new RecoveryStore(reads).countGrace(1, 0));
  note(...afterRestore({ now: 0, cut: 0 }, new Map()));
  for (const table of [VM_SAMPLES, DATABASE_SAMPLES]) {
    const samples = new SamplesStore<string>(reads, table);
    await samples.range(1, 5, SPAN);
    await samples.newest(1, 0);
    note(samples.insert(1, { at: 0 } as never), samples.aggregate(SPAN), samples.prune(5, 0));
  }
  const sealed = new SealedColumnsStore({ metadata: reads });
  await sealed.holdsSealedValues();
  for (const column of SEALED_COLUMNS) {
    const row = { key: column.key.map(() => ''), sealed: new Uint8Array(), contextValue: null };
    await sealed.page(column, null, 1);
    await sealed.page(column, row, 1);
    note(sealed.replacement(column, row, row.sealed));
  }
}

/** The error of the engine; null: it accepts the text. */
function sqliteRefusal(database: Database.Database, sql: string): string | null {
  try {
    database.prepare(sql);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

async function postgresqlRefusal(client: pg.Client, sql: string): Promise<string | null> {
  const error: unknown = await client.query(`PREPARE one AS ${numbered(sql)}`).then(
    () => null,
    (reason) => reason,
  );
  if (error === null) await client.query('DEALLOCATE one');
  return error === null ? null : String(error);
}

describe('SQL of the domains', { skip: noPostgresql }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-statements-'));
  let server: OperatorServer;
  let client: pg.Client;
  let sqlite: Database.Database;
  let written: WrittenSql;
  before(async () => {
    written = await writtenSql();
    sqlite = openWriter(directory);
    migrate(sqlite, migrations, 0);
    server = await operatorPostgresql();
    client = await connect({ url: server.url('postgres', 'of-the-operator'), onEnd: () => {} });
    await migrateSchema(client, 0);
    await callBrowsing();
    await callMoney();
    await callOthers();
  });
  after(async () => {
    await client?.end();
    await server?.close();
    sqlite.close();
    rmSync(directory, { recursive: true });
  });

  test('each text with parts that depend on arguments is called here', async () => {
    const { open } = written;
    assert.ok(open.length > 20, `${open.length} such texts`);
    const missed = open.filter((each) => ![...called].some((text) => isOf(each, text)));
    assert.deepEqual(
      missed.map(({ file, pieces }) => `${file}: ${pieces.join('…')}`),
      [],
      'add a call to this test that makes it',
    );
  });

  test('each text is taken by SQLite and by PostgreSQL', async () => {
    const all = new Set([...written.texts, ...called]);
    assert.ok(all.size > 350, `${all.size} texts`);
    const { rows } = await client.query<{ name: string }>('SELECT sequencename AS name FROM pg_sequences');
    const numberedTables = new Set(rows.map(({ name }) => name.replace(/_id_seq$/, '')));
    const refused: string[] = [];
    for (const sql of all) {
      const insert = insertedRow(sql);
      const getsId = insert !== null && insert.idParam < 0 && numberedTables.has(insert.table);
      const bySqlite = sqliteRefusal(sqlite, sql);
      const byPostgresql = await postgresqlRefusal(client, getsId ? withId(sql) : sql);
      const isPart = [...all].some((other) => other !== sql && other.includes(sql));
      if (isPart && bySqlite !== null) continue;
      if (bySqlite !== null) refused.push(`SQLite: ${bySqlite}: ${sql}`);
      if (byPostgresql !== null) refused.push(`PostgreSQL: ${byPostgresql}: ${sql}`);
    }
    assert.deepEqual(refused, []);
  });

  test('counters that many commits of a batch change are increments, which PostgreSQL adds up', () => {
    const plain = [...written.texts].filter((sql) => !BALANCES.includes(COUNTS.exec(sql)?.[1] ?? 'accounts'));
    assert.deepEqual(plain, [], 'made by increment(): else the whole batch is stored commit by commit');
  });
});
