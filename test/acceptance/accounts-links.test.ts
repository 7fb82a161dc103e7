/** Links for a password or an account work once, at their own host, and not after the account was closed. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { parseResponse, sendRaw } from '../harness/raw-http.ts';

const AT_ONCE = 20;
const NEXT = 'quite another one';

let cloud: CloudProcess;
let admin: CheckedClient;
let anyone: CheckedClient;
before(async () => {
  cloud = await CloudProcess.start();
  admin = await CheckedClient.open(cloud.api, ADMIN_KEY);
  anyone = admin.as(undefined);
});
after(() => cloud?.stop());

interface Link {
  readonly path: string;
  readonly json: Readonly<Record<string, string>>;
}

let made = 0;
const KINDS: Readonly<Record<string, () => Promise<Link>>> = {
  'a reset link': async () => {
    const { id } = await anyone.register();
    const { url } = await admin.expect(201, `/api/admin/accounts/${id}/reset-link`, { method: 'POST' });
    return { path: '/api/reset-password', json: { token: tokenOf(url), password: NEXT } };
  },
  'an invitation': async () => {
    const username = `invited-${++made}`;
    const json = { username, email: `${username}@example.org` };
    const { url } = await admin.expect(201, '/api/admin/invitations', { json });
    return { path: '/api/join', json: { token: tokenOf(url), password: NEXT } };
  },
};
const tokenOf = (url: string) => new URL(url).hash.slice('#token='.length);

/** The request with headers that no client library would send. */
async function sent(
  { path, json }: Link,
  host: string,
  more = '',
): Promise<{ status: number; code?: string }> {
  const body = JSON.stringify(json);
  const head = `POST ${path} HTTP/1.1\r\nHost: ${host}\r\n${more}Content-Type: application/json\r\nConnection: close\r\n`;
  const answer = parseResponse(
    await sendRaw(cloud.api, `${head}Content-Length: ${body.length}\r\n\r\n${body}`),
  );
  return { status: answer.status, code: answer.body.code };
}

for (const [kind, make] of Object.entries(KINDS)) {
  test(`${kind} works at its own host only`, async () => {
    const link = await make();
    const { host, port } = new URL(cloud.api);
    for (const other of [`localhost:${port}`, 'localhost', `evil.example:${port}`, '[::1]']) {
      const { status, code } = await sent(link, other);
      assert.ok(code === 'invalid_link' || code === 'misdirected_request', `${other}: ${status} ${code}`);
    }
    const claims = `X-Forwarded-Host: ${host}\r\nForwarded: host=${host}\r\n`;
    assert.equal((await sent(link, `localhost:${port}`, claims)).code, 'invalid_link');
    const evil = 'Origin: https://evil.example\r\nSec-Fetch-Site: cross-site\r\n';
    assert.notEqual((await sent(link, `localhost:${port}`, evil)).status, 200);
    const { status } = await sent(link, host, `Origin: ${cloud.api}\r\nSec-Fetch-Site: same-origin\r\n`);
    assert.ok([200, 201].includes(status), 'none of the refused tries has used it up');
  });

  test(`${kind} is used once by ${AT_ONCE} at once`, async () => {
    const { path, json } = await make();
    const tries = Array.from({ length: AT_ONCE }, (_, i) =>
      anyone.call(path, { json: { ...json, password: `${NEXT} ${i}` } }),
    );
    const answers = await Promise.all(tries);
    const done = answers.filter(({ status }) => [200, 201].includes(status));
    assert.equal(done.length, 1);
    const others = answers.filter(({ status }) => status >= 300);
    // An invitation that names its user has reserved this name.
    const codes = others.filter(({ body }) => !['invalid_link', 'username_taken'].includes(body.code));
    assert.deepEqual(codes, []);
  });
}

test('a reset link is worth nothing once its account is closed or removed', async () => {
  for (const end of ['closed', 'removed']) {
    const { id, api_key } = await anyone.register();
    const { url } = await admin.expect(201, `/api/admin/accounts/${id}/reset-link`, { method: 'POST' });
    if (end === 'closed') await anyone.as(api_key).expect(200, '/api/account', { method: 'DELETE' });
    else await admin.expect(200, `/api/admin/accounts/${id}/remove`, { json: { reason: 'left' } });
    const code = end === 'closed' ? 'invalid_link' : 'account_suspended';
    const json = { token: tokenOf(url), password: NEXT };
    await anyone.refused(403, code, ['/api/reset-password', { json }]);
  }
});
