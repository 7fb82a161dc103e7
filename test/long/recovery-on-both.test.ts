/** The tests of recovery again, for clouds with metadata in PostgreSQL and objects in S3. */
import { after, before, describe } from 'node:test';
import { operatorPostgresql } from '../../server/testing/operator-postgresql.ts';
import type { OperatorServer } from '../../server/testing/operator-server.ts';
import { noPostgresql } from '../../server/testing/postgresql-fixture.ts';
import { S3Fixture } from '../../server/testing/s3-fixture.ts';
import { FILES_AT_ONCE, testWholeSuites } from './whole-suites.ts';

/** Whole clouds, drills, and single restores: objects, a machine, a database, a database as of a moment. */
const ONLY = [
  'recovery-drill',
  'recovery-moments',
  'recovery-one-database',
  'recovery-one-machine',
  'recovery-one-object',
  'recovery-one-object-s3',
  'recovery-whole',
];

describe('recovery with the metadata in PostgreSQL and the objects in S3', {
  skip: noPostgresql,
  concurrency: FILES_AT_ONCE,
}, () => {
  let server: OperatorServer;
  let s3: S3Fixture;
  before(async () => {
    server = await operatorPostgresql();
    s3 = await S3Fixture.start();
  });
  after(async () => {
    await server?.close();
    await s3?.close();
  });

  const settings = () => ({
    TEST_METADATA_SERVER: server.url('postgres', 'of-the-operator'),
    TEST_BLOBS_BUCKET: s3.url(''),
  });
  testWholeSuites({ folder: 'acceptance', only: ONLY, settings });
});
