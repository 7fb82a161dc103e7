import assert from 'node:assert/strict';
import { test } from 'node:test';
import { declaredRoutes } from '../../cloud/edges.ts';

/** Calls about machines, databases and recovery that every node answers from rows alone. */
const FROM_ROWS: Readonly<Record<string, string>> = {
  listImages: 'rows of images',
  adminListImages: 'rows of images',
  adminListKnownImages: 'rows of images',
  listRecoveryPoints: 'rows of points',
  listSshKeys: 'rows of keys',
  addSshKey: 'rows of keys',
  deleteSshKey: 'rows of keys',
  listSavedQueries: 'rows of queries',
  saveQuery: 'rows of queries',
  deleteSavedQuery: 'rows of queries',
};
/** Calls of other domains that reach machines, databases or recovery points. */
const REACHING = [
  ...['closeAccount', 'adminSuspendAccount', 'adminResumeAccount', 'adminAdjustCredits'],
  ...['adminChangeAccount', 'listBucketPoints', 'restoreBucket', 'startScrub', 'getScrub'],
  ...[
    'adminListVms',
    'adminStopVm',
    'adminDeleteVm',
    'adminAddImage',
    'adminFetchImage',
    'adminUploadImage',
    'adminDeleteImage',
  ],
];

const routes = declaredRoutes();

test('each call about machines, databases and recovery says that it lives on the host node', () => {
  const here = routes
    .filter(({ tag, name }) => ['compute', 'databases', 'recovery'].includes(tag) || REACHING.includes(name))
    .filter(({ livesOn, name }) => livesOn === undefined && FROM_ROWS[name] === undefined);
  assert.deepEqual(
    here.map(({ name }) => name),
    [],
  );
});

test('the lists above name calls that there are, and that need them', () => {
  for (const name of [...Object.keys(FROM_ROWS), ...REACHING]) {
    const route = routes.find((each) => each.name === name);
    assert.equal(route?.livesOn !== undefined, !(name in FROM_ROWS), name);
  }
});

test('no call that changes something is done elsewhere for want of the host, but those of accounts', () => {
  const changing = routes.filter(({ livesOn, method }) => livesOn === 'host-or-any' && method !== 'GET');
  assert.deepEqual(
    changing.filter(({ path }) => !/account|closed/.test(path)).map(({ name }) => name),
    [],
  );
});
