/** A session whose password was given long ago gets no secret until it gives the password again. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { type SessionHeaders, sessionOf } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { FAKED_CLOCK, noFakedClock } from './faked-clock.ts';

const folder = mkdtempSync(join(tmpdir(), 'cloudlet-clock-'));
const clock = join(folder, 'clock');
const set = (offset: string) => writeFileSync(clock, `${offset}\n`);
const PASSWORD = 'correct horse battery';
let cloud: CloudProcess;
let anyone: CheckedClient;
let headers: SessionHeaders;
let user: CheckedClient;
let databaseId: string;
let operationId: string;

before(async () => {
  set('+0');
  const env = noFakedClock ? {} : { ...FAKED_CLOCK, FAKETIME_TIMESTAMP_FILE: clock };
  cloud = await CloudProcess.start({ dataDir: join(folder, 'data'), env });
  anyone = await CheckedClient.open(cloud.api);
  const { id, username, api_key } = await anyone.register();
  const json = { is_admin: true };
  await anyone.as(ADMIN_KEY).expect(200, `/api/admin/accounts/${id}`, { method: 'PATCH', json });
  user = anyone.as(api_key);
  const later = { json: { name: 'shop' }, headers: { prefer: 'respond-async' } };
  operationId = (await user.expect(202, '/api/databases', later)).operation_id;
  const made = await user.expect(200, `/api/operations/${operationId}?wait=60`);
  databaseId = made.result.database_id;
  headers = sessionOf(await anyone.call('/api/login', { json: { username, password: PASSWORD } }));
});
after(async () => {
  await cloud?.stop();
  rmSync(folder, { recursive: true });
});

test('each call that declares it asks an old session for its password, before it looks at the input', {
  skip: noFakedClock,
}, async () => {
  set('+16m');
  const BY_INPUT = [
    'updateAccount',
    'adminChangeAccount',
    'createTicket',
    'approveDeviceLogin',
    'exportAccount',
  ];
  let asked = 0;
  for (const { method, path, operation } of anyone.declaration.operations) {
    const { operationId: name, responses } = operation;
    const isAsking = responses[403]?.description.includes('password_required') === true;
    if (!isAsking || BY_INPUT.includes(name)) continue;
    const url = path.replaceAll(/\{\w+\}/g, '1');
    const call = method === 'GET' ? {} : { json: {} };
    const answer = await anyone.call(url, { method, headers, ...call });
    if (answer.body?.code === 'password_required') asked++;
    else
      assert.match(
        String(answer.body?.code),
        /^(?:invalid_request|mail_not_set|\w+_not_found)$/,
        `${name} by its rules`,
      );
  }
  assert.ok(asked >= 14, `${asked} asked`);
});

test('an old session reads a connection without its password, and no kept answer with one', {
  skip: noFakedClock,
}, async () => {
  set('+32m');
  const credentials = `/api/databases/${databaseId}/credentials`;
  const { connection } = await user.expect(200, credentials);
  assert.ok(connection.password.length > 10);
  const shown = await anyone.expect(200, credentials, { headers });
  assert.equal(JSON.stringify(shown).includes(connection.password), false);
  assert.deepEqual([shown.connection.password, shown.connection.uri.includes('***')], [undefined, true]);
  const operation = `/api/operations/${operationId}`;
  for (const call of [{}, { method: 'POST', path: '/cancel' }] as const) {
    const { path = '', ...rest } = { path: '', ...call };
    const kept = await anyone.call(operation + path, { headers, ...rest });
    assert.deepEqual([kept.status, kept.body.code], [403, 'password_required']);
  }
  const rotate = { method: 'POST', headers };
  const refused = await anyone.call(`${credentials}/rotate`, rotate);
  assert.deepEqual([refused.status, refused.body.code], [403, 'password_required']);
  await user.expect(200, operation);

  await anyone.expect(200, '/api/account/confirm-password', {
    headers,
    json: { current_password: PASSWORD },
  });
  const again = await anyone.expect(200, credentials, { headers });
  assert.equal(again.connection.password, connection.password);
  assert.equal(
    (await anyone.expect(200, operation, { headers })).result.connection.password,
    connection.password,
  );
  const { connection: rotated } = await anyone.expect(200, `${credentials}/rotate`, rotate);
  assert.notEqual(rotated.password, connection.password);
});
