/** Accounts request dumps and do not read them: others get theirs, and recovery points are complete. */
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { after, before, test } from 'node:test';
import pg from 'pg';
import { NO_POSTGRESQL } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { eventually } from '../harness/waiting.ts';
import { DATABASES } from './databases-kit.ts';
import { LosableCloud } from './recovery-kit.ts';

const skip = globSync('build/programs/postgresql-*/usr').length > 0 ? false : NO_POSTGRESQL;
const ATTACKERS = 4;
const DUMPS = 15;
/** More than all buffers on the way to a reader hold, but very little on disk. */
const LARGE = "CREATE TABLE t AS SELECT repeat('x', 1000000) AS text FROM generate_series(1, 60)";

let lost: LosableCloud;
before(async () => {
  if (!skip) lost = await LosableCloud.start();
});
after(() => (skip ? undefined : lost.end()));

async function newTenant(sql: string) {
  const user = await new Client(lost.cloud.api).newUser();
  const { status, body } = await user.call(DATABASES, { json: { name: 'shop', engine: 'postgresql' } });
  assert.equal(status, 201, JSON.stringify(body));
  const client = new pg.Client({ connectionString: body.connection.uri });
  await client.connect();
  await client.query(sql);
  await client.end();
  return { user, dump: `${DATABASES}/${body.database_id}/dump` };
}

test('sixty dumps that nobody reads: the point lacks nothing, and another has its dump', {
  skip,
}, async () => {
  const victim = await newTenant('CREATE TABLE mine (a int)');
  let answers = 0;
  for (let at = 0; at < ATTACKERS; at++) {
    const { user, dump } = await newTenant(LARGE);
    for (let asked = 0; asked < DUMPS; asked++) {
      user.fetch(dump).then(
        ({ status }) => {
          if (status === 200) answers++;
        },
        () => {},
      );
    }
  }
  await eventually('the dumps are under way', () => answers >= 5);
  const given = victim.user.fetch(victim.dump).then((answer) => answer.text());
  const point = await lost.point();
  assert.deepEqual([point.state, point.gaps], ['complete', []]);
  assert.match(await given, /CREATE TABLE public\.mine/);
});
