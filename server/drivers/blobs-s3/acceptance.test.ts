/** Some of the acceptance tests again, with the clouds' objects in S3. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { operatorPostgresql } from '../../testing/operator-postgresql.ts';
import type { OperatorServer } from '../../testing/operator-server.ts';
import { noPostgresql } from '../../testing/postgresql-fixture.ts';
import { S3Fixture } from '../../testing/s3-fixture.ts';

const ACCEPTANCE = join(import.meta.dirname, '../../../test/acceptance');
/** `TEST_BLOBS_BUCKET=URL node --test FILE` runs any other test that does not read the data directory. */
const FILES = ['recovery', 'storage-download'];

let s3: S3Fixture;
before(async () => {
  s3 = await S3Fixture.start();
});
after(() => s3.close());

async function assertPasses(name: string, settings: Readonly<Record<string, string>> = {}): Promise<void> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const file = join(ACCEPTANCE, `${name}.test.ts`);
  const child = spawn(process.execPath, ['--test', '--test-reporter=spec', file], {
    env: { ...env, TEST_BLOBS_BUCKET: s3.url(''), ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [stdout, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  assert.equal(code, 0, stdout.slice(-4000));
  assert.match(stdout, /ℹ pass [1-9]/);
}

describe('with the objects in S3', () => {
  for (const name of FILES) {
    test(name, async () => {
      const before = s3.count('PUT');
      await assertPasses(name);
      assert.ok(s3.count('PUT') > before, 'nothing went to S3');
    });
  }
});

describe('with the objects in S3 and the metadata in PostgreSQL', { skip: noPostgresql }, () => {
  let server: OperatorServer;
  before(async () => {
    server = await operatorPostgresql();
  });
  after(() => server?.close());

  test('storage-upload', () =>
    assertPasses('storage-upload', {
      TEST_METADATA_SERVER: server.url('postgres', 'of-the-operator'),
    }));
});
