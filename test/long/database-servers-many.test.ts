/** Two hundred databases of a hundred accounts, ten of which are in use: their memory. */
import assert from 'node:assert/strict';
import { globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createConnection } from 'mysql2/promise';
import pg from 'pg';
import { NO_MARIADB, NO_POSTGRESQL } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';

const ACCOUNTS = 100;
const ACTIVE = 10;
const MOST_BEYOND_MB = 150;
const isThere = (name: string) => globSync(`build/programs/${name}-*/usr`).length > 0;
const skip = (isThere('postgresql') ? false : NO_POSTGRESQL) || (isThere('mariadb') ? false : NO_MARIADB);

/** Of the process and its children, MB: each page is divided among the processes that have it. */
function megabytes(pid: number): number {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc').filter((each) => /^\d+$/.test(each)))
    parents.set(Number(name), Number(fieldOf(Number(name), 'status', 'PPid')));
  const own = [...parents].filter(([each, parent]) => each === pid || parent === pid);
  return own.reduce((sum, [each]) => sum + Number(fieldOf(each, 'smaps_rollup', 'Pss')) / 1024, 0);
}

/** 0 when it has ended. */
function fieldOf(pid: number, file: string, field: string): string {
  try {
    const text = readFileSync(`/proc/${pid}/${file}`, 'latin1');
    return new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? '0';
  } catch {
    return '0';
  }
}

async function open(uri: string): Promise<() => void> {
  if (uri.startsWith('mysql:')) {
    const driver = await createConnection(uri);
    driver.on('error', () => {});
    await driver.query('SELECT 1');
    return () => driver.destroy();
  }
  const client = new pg.Client({ connectionString: uri });
  client.on('error', () => {});
  await client.connect();
  await client.query('SELECT 1');
  return () => void client.end().catch(() => {});
}

test('those that sleep take nothing, and the active ones no more than ten servers do', {
  skip,
}, async (t) => {
  const cloud = await CloudProcess.start({ env: { CLOUDLET_DATABASE_IDLE_SECONDS: '10' } });
  t.after(() => cloud.stop());
  const uris: string[] = [];
  const before = megabytes(cloud.pid);
  for (let at = 0; at < ACCOUNTS; at++) {
    const user = await new Client(cloud.api).newUser();
    const engine = at % 2 === 0 ? 'postgresql' : 'mysql';
    for (const name of ['one', 'two']) {
      const { status, body } = await user.call('/api/databases', { json: { name, engine } });
      assert.equal(status, 201, JSON.stringify(body));
      if (name === 'one') uris.push(body.connection.uri);
    }
  }
  const servers = () => {
    const notes = globSync(join(cloud.dataDir, 'databases/*/accounts/*/keeper/run'));
    const pids = notes.map((note) => Number(readFileSync(note, 'latin1').split(' ')[1]));
    return pids.filter((pid) => megabytes(pid) > 0);
  };
  await eventually('all sleep', () => servers().length === 0);
  const asleep = megabytes(cloud.pid);
  const closers = await Promise.all(uris.slice(0, ACTIVE).map(open));
  const each = servers().map(megabytes);
  const used = megabytes(cloud.pid) - asleep + each.reduce((sum, one) => sum + one, 0);
  for (const close of closers) close();
  const figures = `asleep ${(asleep - before).toFixed(0)} MB more than without any, active ${used.toFixed(0)} MB, one ${Math.max(...each).toFixed(0)} MB`;
  t.diagnostic(figures);
  assert.equal(each.length, ACTIVE);
  assert.ok(asleep - before <= MOST_BEYOND_MB, figures);
  assert.ok(used <= ACTIVE * Math.max(...each) + MOST_BEYOND_MB, figures);
});
