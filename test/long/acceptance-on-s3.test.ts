/** The acceptance tests of objects again, with the clouds' objects in S3 and their metadata in a file. */
import { after, before, describe } from 'node:test';
import { S3Fixture } from '../../server/testing/s3-fixture.ts';
import { FILES_AT_ONCE, testWholeSuites } from './whole-suites.ts';

const LOOKS_FOR_FILES = 'it looks for the files of objects';
const OWN_SETTINGS = 'what it starts has settings of its own';
const EXCLUDED: Readonly<Record<string, string>> = {
  'accounts-commands': OWN_SETTINGS,
  'billing-report': OWN_SETTINGS,
  'databases-upgrade': OWN_SETTINGS,
  guides: OWN_SETTINGS,
  'guides-machines': OWN_SETTINGS,
  'guides-pages': OWN_SETTINGS,
  proxies: LOOKS_FOR_FILES,
  'recovery-drill-beside': 'its cloud is in its own network, where S3 is not',
  'recovery-restore': LOOKS_FOR_FILES,
  'recovery-unpack': LOOKS_FOR_FILES,
  'recovery-writers': 'it copies the data directory, which the objects are not in',
  'storage-encryption': LOOKS_FOR_FILES,
  'storage-names': LOOKS_FOR_FILES,
  'storage-upload-refusals': LOOKS_FOR_FILES,
};

describe('acceptance with the objects in S3', { concurrency: FILES_AT_ONCE }, () => {
  let s3: S3Fixture;
  before(async () => {
    s3 = await S3Fixture.start();
  });
  after(() => s3?.close());

  testWholeSuites({
    folder: 'acceptance',
    excluded: EXCLUDED,
    settings: () => ({ TEST_BLOBS_BUCKET: s3.url('') }),
  });
});
