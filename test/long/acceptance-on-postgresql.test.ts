/** Acceptance and fault tests again, with the metadata in PostgreSQL and the objects as files. */
import { after, before, describe } from 'node:test';
import { operatorPostgresql } from '../../server/testing/operator-postgresql.ts';
import type { OperatorServer } from '../../server/testing/operator-server.ts';
import { noPostgresql } from '../../server/testing/postgresql-fixture.ts';
import { FILES_AT_ONCE, testWholeSuites } from './whole-suites.ts';

const READS_FILE = 'it reads or alters metadata.db itself';
const OWN_SETTINGS = 'what it starts has settings of its own';
const IN_OWN_NETWORK = 'its clouds are in their own network, where the server is not';
const COPIES = 'it copies the data directory, which the metadata are not in';
const EXCLUDED: Readonly<Record<string, string>> = {
  'accounts-commands': OWN_SETTINGS,
  'billing-clock': READS_FILE,
  'billing-machines': READS_FILE,
  'billing-report': READS_FILE,
  'databases-money': READS_FILE,
  'databases-upgrade': OWN_SETTINGS,
  guides: OWN_SETTINGS,
  'guides-machines': OWN_SETTINGS,
  'guides-pages': OWN_SETTINGS,
  'http-lifecycle': READS_FILE,
  'recovery-drill-beside': IN_OWN_NETWORK,
  'recovery-first': COPIES,
  'recovery-gap': READS_FILE,
  'recovery-parts': READS_FILE,
  'recovery-writers': COPIES,
  'storage-encryption': 'it looks for bytes in the data directory, and small objects are with the metadata',
  'vms-closed': IN_OWN_NETWORK,
  'vms-sshd': IN_OWN_NETWORK,
  'vms-suspended': READS_FILE,
};

/** Tests of stored data and of kills; the others are about disks, or read metadata.db. */
const FAULTS = [
  'databases-kill',
  'hot-keys',
  'kill',
  'kill-after-answer',
  'recovery-object-kill',
  'recovery-target',
  'repeated-deletes',
  'vanishing-client',
];

describe('acceptance and faults with the metadata in PostgreSQL', {
  skip: noPostgresql,
  concurrency: FILES_AT_ONCE,
}, () => {
  let server: OperatorServer;
  before(async () => {
    server = await operatorPostgresql();
  });
  after(() => server?.close());

  const settings = () => ({ TEST_METADATA_SERVER: server.url('postgres', 'of-the-operator') });
  testWholeSuites({ folder: 'acceptance', excluded: EXCLUDED, settings });
  testWholeSuites({ folder: 'faults', only: FAULTS, settings });
});
