import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { scanHandler } from './child-query.ts';
import { TenantConnections } from './tenant-connections.ts';

const MIB = 2 ** 20;

test('a scan that nobody reads on ends when too much is written, and the log is short again', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-scan-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'a.sqlite');
  writeFileSync(path, '');
  const tenant = new TenantConnections(
    path,
    { sizeLimitBytes: 64 * MIB, mayGrow: true },
    { connections: 2, statementMs: 1000 },
  );
  t.after(() => tenant.closeAll());
  const database = tenant.open();
  database.exec('CREATE TABLE t (a)');
  const fill = database.prepare('INSERT INTO t VALUES (randomblob(100000))');
  for (let i = 0; i < 20; i++) fill.run();
  const parts: number[] = [];
  const scan = (part: () => Promise<Uint8Array>) =>
    scanHandler(
      tenant,
      MIB,
    )({
      head: { statement: 'SELECT a FROM t', params: [] },
      body: Buffer.alloc(0),
      signal: new AbortController().signal,
      part: (_, body) => {
        parts.push(body?.length ?? 0);
        return part();
      },
    });
  await scan(async () => Buffer.alloc(0));
  assert.ok(parts.length > 2, 'one that is read gets all');
  const paused = scan(() => Promise.withResolvers<Uint8Array>().promise);
  const held = assert.rejects(paused, /read too slowly: the log of the database grew/);
  // As much as the file contains may be written meanwhile.
  const write = database.prepare('UPDATE t SET a = randomblob(100000)');
  for (let i = 0; i < 3; i++) write.run();
  assert.ok(tenant.logBytes() > 4 * MIB);
  await held;
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  write.run();
  assert.ok(tenant.logBytes() < 4 * MIB, 'nothing holds the log any more');
});
