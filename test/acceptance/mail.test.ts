/**
 * Mail of a running cloud with a real SMTP server: it waits across a kill, and its failure raises an alarm.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { MailServer } from '../harness/mail-server.ts';
import { eventually } from '../harness/waiting.ts';

let server: MailServer;
let cloud: CloudProcess;
let admin: CheckedClient;
before(async () => {
  server = await new MailServer('cloud:secret').open();
  const env = { CLOUDLET_SMTP_URL: server.url, CLOUDLET_MAIL_FROM: 'A cloud <cloud@example.org>' };
  cloud = await CloudProcess.start({ env });
  admin = await CheckedClient.open(cloud.api, ADMIN_KEY);
});
after(async () => {
  await cloud?.stop();
  await server?.close();
});

const alarmed = async () => {
  const { alarms } = await admin.expect(200, '/api/system/status');
  return alarms.some(({ code }: { code: string }) => code === 'mail_failing');
};

test('a mail is sent by the server of the settings', async () => {
  const { id, state } = await admin.expect(201, '/api/admin/mail/test', { json: { to: 'ada@example.org' } });
  assert.equal(state, 'pending');
  const mail = await server.mailTo('ada@example.org');
  assert.equal(mail.messageId, `<${id}@example.org>`);
  const sent = async () => (await admin.expect(200, '/api/admin/mails?limit=1'))[0]?.state === 'sent';
  await eventually('the mail counts as sent', sent);
  const status = await admin.expect(200, '/api/admin/mail');
  assert.deepEqual([status.enabled, status.from, status.sent], [true, 'cloud@example.org', 1]);
  assert.ok(!JSON.stringify(status).includes('secret'));
  await admin.refused(400, 'invalid_request', ['/api/admin/mail/test', { json: { to: 'a,b@example.org' } }]);
});

test('who confirms an address without a key is seen in the log of the account', async () => {
  const { id, username, api_key } = await admin.as(undefined).register();
  const { text } = await server.mailTo(`${username}@example.org`);
  const token = /#token=([\w-]+)/.exec(text)?.[1];
  await admin.as(undefined).expect(200, '/api/confirm-email', { json: { token } });
  const [entry] = await admin.as(api_key).expect(200, '/api/audit?action=confirmEmail');
  assert.deepEqual([entry.account_id, entry.actor_id, entry.outcome], [id, null, 'done']);
});

test('while the server is down mail waits, also through a kill, and an alarm says so', async () => {
  await server.close();
  await admin.expect(201, '/api/admin/mail/test', { json: { to: 'ben@example.org' } });
  await eventually('an alarm', alarmed);
  await cloud.crash();
  await server.open();
  await cloud.start();
  admin = await CheckedClient.open(cloud.api, ADMIN_KEY);
  const mail = await server.mailTo('ben@example.org');
  assert.equal(mail.subject, 'Test e-mail from Cloudlet');
  assert.equal(server.received.filter(({ to }) => to.includes('ben@example.org')).length, 1);
  await eventually('no alarm', async () => !(await alarmed()));
});
