/** Tenants that lock their tables while a recovery point is created. */
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { createConnection } from 'mysql2/promise';
import { Client as Postgresql } from 'pg';
import { NO_MARIADB, NO_POSTGRESQL } from '../../scripts/installed.ts';
import { DATABASES } from './databases-kit.ts';
import { LosableCloud } from './recovery-kit.ts';

const isThere = (program: string) => globSync(`build/programs/${program}-*/usr`).length > 0;
const skip = (isThere('postgresql') ? false : NO_POSTGRESQL) || (isThere('mariadb') ? false : NO_MARIADB);

let lost: LosableCloud;
before(async () => {
  if (!skip) lost = await LosableCloud.start({ CLOUDLET_RECOVERY_SILENCE_SECONDS: '6' });
});
after(() => (skip ? undefined : lost.end()));

async function make(engine: string, name: string) {
  return lost.user.expect(201, DATABASES, { json: { name, engine } });
}

test('each is a gap of the point, which has all others', { skip }, async () => {
  const [pg, my, free] = [
    await make('postgresql', 'locked-pg'),
    await make('mysql', 'locked-my'),
    await make('postgresql', 'free'),
  ];
  const inPg = new Postgresql(pg.connection.uri);
  inPg.on('error', () => {});
  await inPg.connect();
  const inMy = await createConnection(my.connection.uri);
  inMy.on('error', () => {});
  try {
    await inPg.query('CREATE TABLE t (x int)');
    await inPg.query('BEGIN; LOCK TABLE t');
    await inMy.query('CREATE TABLE t (x int)');
    await inMy.query('LOCK TABLES t WRITE');
    const point = await lost.point();
    assert.equal(point.state, 'partial');
    const gaps = point.gaps as { component: string; reason: string }[];
    assert.deepEqual(gaps.map(({ component }) => component).sort(), [
      `database locked-my (${my.database_id})`,
      `database locked-pg (${pg.database_id})`,
    ]);
    for (const { reason } of gaps) assert.match(reason, /a session may hold a lock/);
    // They are unchanged: no session was ended.
    await inPg.query('INSERT INTO t VALUES (1); COMMIT');
    await inMy.query('INSERT INTO t VALUES (1)');
    await inMy.query('UNLOCK TABLES');
    assert.deepEqual((await lost.point()).gaps, []);
    assert.equal((await lost.user.expect(200, `${DATABASES}/${free.database_id}`)).state, 'ready');
  } finally {
    await inPg.end();
    await inMy.end();
  }
});
