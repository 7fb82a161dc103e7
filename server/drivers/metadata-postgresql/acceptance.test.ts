/** Some of the acceptance tests again, with the clouds' metadata in PostgreSQL. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { operatorPostgresql } from '../../testing/operator-postgresql.ts';
import type { OperatorServer } from '../../testing/operator-server.ts';
import { noPostgresql } from '../../testing/postgresql-fixture.ts';

const ACCEPTANCE = join(import.meta.dirname, '../../../test/acceptance');
/**
 * Short ones of each domain; uploads are in blobs-s3/acceptance.test.ts. test:long runs all others;
 * `TEST_METADATA_SERVER=URL node --test FILE` runs one.
 */
const FILES = ['accounts-access-keys', 'recovery-making', 'storage-buckets', 'storage-versions'];

describe('with the metadata in PostgreSQL', { skip: noPostgresql }, () => {
  let server: OperatorServer;
  before(async () => {
    server = await operatorPostgresql();
  });
  after(() => server?.close());

  for (const name of FILES) {
    test(name, () => {
      const { NODE_TEST_CONTEXT: _, ...env } = process.env;
      const file = join(ACCEPTANCE, `${name}.test.ts`);
      const { status, stdout } = spawnSync(process.execPath, ['--test', '--test-reporter=spec', file], {
        env: { ...env, TEST_METADATA_SERVER: server.url('postgres', 'of-the-operator') },
        encoding: 'utf8',
      });
      assert.equal(status, 0, stdout.slice(-4000));
      assert.match(stdout, /ℹ pass [1-9]/);
    });
  }
});
