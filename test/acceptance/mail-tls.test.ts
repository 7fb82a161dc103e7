/** Mail over TLS, implicit and with STARTTLS: bad certificates and passwords are reported, nothing leaks. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { MailServer } from '../harness/mail-server.ts';
import { selfSigned } from '../harness/self-signed.ts';
import { eventually } from '../harness/waiting.ts';

const skip = notInstalled('openssl');
const LOGIN = 'cloud:right-secret';
let directory: string;
before(() => {
  directory = mkdtempSync(join(tmpdir(), 'cloudlet-mail-'));
});
after(() => rmSync(directory, { recursive: true }));

/** The alarm about mail after a cloud sent one mail, or undefined if it was sent. */
async function send(url: string, env: Record<string, string> = {}) {
  const settings = { CLOUDLET_SMTP_URL: url, CLOUDLET_MAIL_FROM: 'cloud@example.org' };
  const cloud = await CloudProcess.start({ env: { ...settings, ...env } });
  try {
    const admin = await CheckedClient.open(cloud.api, ADMIN_KEY);
    await admin.expect(201, '/api/admin/mail/test', { json: { to: 'ada@example.org' } });
    const outcome = await eventually('it is sent, or an alarm', async () => {
      const [mail] = await admin.expect(200, '/api/admin/mails?limit=1');
      if (mail.state === 'sent') return { alarm: undefined };
      const { alarms } = await admin.expect(200, '/api/system/status');
      const alarm = alarms.find(({ code }: { code: string }) => code === 'mail_failing');
      return alarm && { alarm: alarm as { detail: string; fix: string } };
    });
    assert.ok(!JSON.stringify(outcome).includes('secret'), 'no password is shown');
    assert.ok(!cloud.output.includes('secret'), 'nor logged');
    return outcome.alarm;
  } finally {
    await cloud.stop();
  }
}

for (const kind of ['smtps', 'starttls'] as const) {
  describe(kind, { skip }, () => {
    let server: MailServer;
    let certFile: string;
    before(async () => {
      const made = selfSigned(directory);
      certFile = made.certFile;
      server = await new MailServer(LOGIN, { kind, ...made }).open();
    });
    after(() => server?.close());

    test('mail goes encrypted to a server whose issuer is trusted', async () => {
      assert.equal(await send(server.url, { NODE_EXTRA_CA_CERTS: certFile }), undefined);
      assert.deepEqual(
        server.received.map(({ to }) => to),
        [['ada@example.org']],
      );
      assert.deepEqual(server.logins, [{ login: LOGIN, isEncrypted: true }]);
    });

    test('an unknown issuer is refused before anything is told', async () => {
      server.received.length = 0;
      server.logins.length = 0;
      const alarm = await send(server.url);
      assert.match(alarm?.detail ?? '', /certificate was rejected: .*self-signed.*NODE_EXTRA_CA_CERTS/);
      assert.deepEqual([server.received, server.logins], [[], []]);
    });

    test('a wrong password is told', async () => {
      server.logins.length = 0;
      const alarm = await send(server.urlFor('cloud:wrong-secret'), { NODE_EXTRA_CA_CERTS: certFile });
      assert.match(alarm?.detail ?? '', /rejected the user or the password in CLOUDLET_SMTP_URL/);
      assert.ok(server.logins.every(({ isEncrypted }) => isEncrypted));
      assert.deepEqual(server.received, []);
    });
  });
}

test('a certificate of another name is refused', { skip }, async () => {
  const made = selfSigned(directory, 'mail.example.org');
  const server = await new MailServer(LOGIN, { kind: 'smtps', ...made }).open();
  try {
    const alarm = await send(server.url, { NODE_EXTRA_CA_CERTS: made.certFile });
    assert.match(alarm?.detail ?? '', /certificate was rejected: .*Use the certificate's host name/);
    assert.deepEqual(server.logins, []);
  } finally {
    await server.close();
  }
});

test('a server that offers no STARTTLS gets no password', async () => {
  const server = await new MailServer(LOGIN).open();
  try {
    const alarm = await send(`${server.url}?tls=starttls`);
    assert.match(alarm?.detail ?? '', /does not support STARTTLS/);
    assert.deepEqual(server.logins, []);
  } finally {
    await server.close();
  }
});
