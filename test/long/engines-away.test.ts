/** PostgreSQL and S3 fail for a minute under load, as in the fault tests at their full length. */
import { describe } from 'node:test';
import { testWholeSuites } from './whole-suites.ts';

describe('PostgreSQL and S3 go away for 60 s', () => {
  testWholeSuites({
    folder: 'faults',
    only: ['blobs-server', 'metadata-server'],
    // The 200 kills are for npm run test:faults.
    settings: () => ({ FAULTS: 'full', FAULTS_ROUNDS: '6' }),
  });
});
