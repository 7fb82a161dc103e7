/** A class with the client: invited by CSV, limited, one password reset, one removed with an export. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { unzip } from '../harness/zip.ts';
import { CliUser } from './cli-kit.ts';

const PASSWORD = 'correct horse';
const PUPILS = Array.from({ length: 30 }, (_, i) => `pupil-${String(i + 1).padStart(2, '0')}`);

let cloud: CloudProcess;
let teacher: CliUser;
let nobody: CheckedClient;
before(async () => {
  cloud = await CloudProcess.start({ env: { CLOUDLET_REGISTRATION: 'invitation' } });
  nobody = await CheckedClient.open(cloud.api);
  teacher = new CliUser();
  await teacher.ok(['login', cloud.api, '--key', '-'], { input: ADMIN_KEY });
});
after(() => cloud?.stop());

const api = (method: string, path: string, body: object) =>
  teacher.ok(['api', method, path, '--data', JSON.stringify(body)]);
const linesOf = async (...args: string[]) => {
  const text = await teacher.ok([...args, '--json']);
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
};
const tokenOf = (link: string) => new URL(link.trim()).hash.slice('#token='.length);

const keys = new Map<string, string>();

test('the class is invited, limited, helped, and the audit log shows it all', async () => {
  const rows = PUPILS.map((name, i) => `${name},${name}@example.org,"Pupil, ${i + 1}"`);
  writeFileSync(
    join(teacher.home, 'class.csv'),
    `\ufeff${['username,email,label,spend_cap', ...rows.map((row, i) => `${row},${i === 0 ? 9 : ''}`)].join('\r\n')}\r\n`,
  );
  await api('POST', '/api/admin/plans', { name: 'class', quotas: { vms: 1 } });
  const made = await linesOf(
    'invite',
    'import',
    'class.csv',
    '--plan',
    'class',
    '--credits',
    '5',
    '--cap',
    '3',
  );
  assert.deepEqual(
    made.map(({ username }) => username),
    PUPILS,
  );
  for (const { username, url } of made) {
    const joined = await nobody.expect(201, '/api/join', {
      json: { token: tokenOf(url), password: PASSWORD },
    });
    assert.equal(joined.plan, 'class');
    keys.set(username, joined.api_key);
  }
  const listed = await linesOf('people');
  const pupils = listed.filter(({ username }) => PUPILS.includes(username));
  assert.deepEqual([pupils.length, new Set(pupils.map(({ plan }) => plan))], [30, new Set(['class'])]);

  const link = (await teacher.ok(['people', 'reset', 'pupil-02'])).trim();
  await nobody.expect(200, '/api/reset-password', {
    json: { token: tokenOf(link), password: 'quite another' },
  });
  const login = (password: string) => ({ json: { username: 'pupil-02', password } });
  await nobody.expect(200, '/api/login', login('quite another'));
  await nobody.refused(401, 'invalid_credentials', ['/api/login', login(PASSWORD)]);

  const leaving = nobody.as(keys.get('pupil-03'));
  await leaving.expect(201, '/api/buckets', { json: { name: 'homework' } });
  await leaving.upload('homework', 'essay.txt', 'mine');
  await teacher.ok(['people', 'remove', 'pupil-03', '--reason', 'has left', '--export', 'pupil-03.zip']);
  const files = unzip(readFileSync(join(teacher.home, 'pupil-03.zip')));
  const essay = files.find(({ name }) => name === 'buckets/homework/objects/essay.txt');
  assert.equal(String(essay?.bytes), 'mine');
  await leaving.refused(403, 'account_suspended', ['/api/buckets']);

  const entries = await linesOf('audit', 'ls', '--account', 'all', '--limit', '200');
  const actions = new Set(entries.map(({ action }) => action));
  const wanted = [
    ...['adminCreatePlan', 'adminImportInvitations', 'join', 'adminCreateResetLink', 'resetPassword'],
    ...['adminExportAccount', 'adminRemoveAccount'],
  ];
  assert.deepEqual(
    wanted.filter((action) => !actions.has(action)),
    [],
    [...actions].join(' '),
  );
  assert.equal(entries.filter(({ action }) => action === 'join').length, 30);
});

test('the class gets one cap in one action, and who is named another', async () => {
  assert.deepEqual(
    (await linesOf('people'))
      .filter(({ username }) => PUPILS.includes(username))
      .map(({ spend_cap }) => spend_cap),
    PUPILS.map((_, i) => (i === 0 ? 9 : 3)),
  );
  const capped = await teacher.ok(['people', 'cap', '2.5', '--plan', 'class']);
  assert.match(capped, /^WHO +CAP\npupil-01 +2\.5\npupil-02 +2\.5\n/);
  assert.equal(capped.trim().split('\n').length, 31);
  const spend = async (name: string) => (await nobody.as(keys.get(name)).expect(200, '/api/billing/cap')).cap;
  assert.match(await teacher.ok(['people', 'cap', 'none', 'PUPIL-01']), /^pupil-01 +none$/m);
  assert.deepEqual([await spend('pupil-01'), await spend('pupil-30')], [null, 2.5]);
  const typo = await teacher.fails(2, ['people', 'cap', '1', 'pupil-30', 'pupil-99', 'pupil-00']);
  assert.match(typo, /no user pupil-99, pupil-00; nothing was changed/);
  assert.equal(await spend('pupil-30'), 2.5);
  await teacher.fails(2, ['people', 'cap', '1']);
  await teacher.fails(2, ['people', 'cap', 'much', 'pupil-30']);
  assert.match(await teacher.fails(1, ['people', 'cap', '--', '-1', 'pupil-30']), /pupil-30: .*spend_cap/);
});
