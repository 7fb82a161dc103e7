/** Registration by invitation: a person and a class, by API, by the client and in a real browser. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY } from '../harness/cloud-process.ts';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible } from './console-journey.ts';
import { ConsoleFixture, PASSWORD } from './console-kit.ts';

const INVITATIONS = '/api/admin/invitations';
const skip = noBrowser;

let fixture: ConsoleFixture;
let admin: CheckedClient;
let anyone: CheckedClient;
before(async () => {
  fixture = await ConsoleFixture.open({ env: { CLOUDLET_REGISTRATION: 'invitation' } });
  admin = await CheckedClient.open(fixture.cloud.api, ADMIN_KEY);
  anyone = admin.as(undefined);
});
after(() => fixture?.close());

const tokenOf = (url: string) => new URL(url).hash.slice('#token='.length);
const joining = (token: string, username: string) => ({
  json: { token, username, email: `${username}@example.org`, password: PASSWORD },
});

describe('by API', () => {
  test('a stranger does not register, and an invited person does, once', async () => {
    const json = { username: 'stranger', email: 'stranger@example.org', password: PASSWORD };
    const refusal = await anyone.refused(403, 'registration_closed', ['/api/register', { json }]);
    assert.match(refusal.hint, /invitation/);
    const made = await admin.expect(201, INVITATIONS, { json: { credits: 5, label: 'the new one' } });
    assert.equal(new URL(made.url).pathname, '/join');
    const token = tokenOf(made.url);
    const shown = await anyone.expect(200, '/api/join/invitation', { json: { token } });
    assert.deepEqual([shown.username, shown.email], [null, null]);
    const account = await anyone.expect(201, '/api/join', joining(token, 'invited'));
    assert.equal(account.credits, 15);
    await anyone.as(account.api_key).expect(200, '/api/account');
    await anyone.refused(403, 'invalid_link', ['/api/join', joining(token, 'second')]);
    await anyone.refused(403, 'invalid_link', ['/api/join/invitation', { json: { token } }]);
    const list = await admin.expect(200, INVITATIONS);
    const own = list.find(({ id }: { id: string }) => id === made.id);
    assert.deepEqual([own.state, own.uses, own.label], ['used', 1, 'the new one']);
    assert.ok(!JSON.stringify(list).includes(token));
    const accounts = await admin.expect(200, '/api/admin/accounts');
    const seen = accounts.find(({ id }: { id: number }) => id === account.id);
    assert.equal(seen.invitation_id, made.id);
    const page = await admin.call(`${INVITATIONS}?limit=1`);
    assert.equal(page.body.length, 1);
    await admin.refused(400, 'invalid_cursor', [`${INVITATIONS}?limit=1&cursor=nonsense`]);
  });

  test('a link works only at the host name by which it was made, and not after it is revoked', async () => {
    const { url, id } = await admin.expect(201, INVITATIONS, { json: {} });
    const token = tokenOf(url);
    const { port } = new URL(fixture.cloud.api);
    const other = await CheckedClient.open(`http://localhost:${port}`);
    await other.refused(403, 'invalid_link', ['/api/join', joining(token, 'elsewhere')]);
    await admin.expect(200, `${INVITATIONS}/${id}`, { method: 'DELETE' });
    await anyone.refused(403, 'invalid_link', ['/api/join', joining(token, 'revoked')]);
    const gone = [`${INVITATIONS}/inv-00000000000000000000000000`, { method: 'DELETE' }] as const;
    await admin.refused(404, 'invitation_not_found', [...gone]);
  });

  test('a class comes from a table, or nobody does', async () => {
    const csv = 'username,email\npupil-1,pupil-1@example.org\npupil-2,pupil-2@example.org\n';
    const bad = await admin.refused(400, 'invalid_request', [
      `${INVITATIONS}/import`,
      { json: { csv: `${csv}PUPIL-1,x@example.org\n` } },
    ]);
    assert.deepEqual(bad.errors, [{ field: 'csv line 4, username', message: 'is also on line 2' }]);
    const before = (await admin.expect(200, INVITATIONS)).length;
    const json = { csv, account_expires_at: '2999-07-31 00:00:00' };
    const { invitations } = await admin.expect(201, `${INVITATIONS}/import`, { json });
    assert.equal((await admin.expect(200, INVITATIONS)).length, before + 2);
    const token = tokenOf(invitations[1].url);
    const account = await anyone.expect(201, '/api/join', { json: { token, password: PASSWORD } });
    assert.deepEqual([account.username, account.email], ['pupil-2', 'pupil-2@example.org']);
    const accounts = await admin.expect(200, '/api/admin/accounts');
    const seen = accounts.find(({ id }: { id: number }) => id === account.id);
    assert.equal(seen.expires_at, '2999-07-31 00:00:00');
  });

  test('a spend cap comes with the invitation: of a table’s row, of its default, and of a class link', async () => {
    const csv =
      'username,email,spend_cap\nrich,rich@example.org,7.5\npoor,poor@example.org,0\nusual,u@example.org,\n';
    const before = (await admin.expect(200, INVITATIONS)).length;
    for (const [cap, problem] of [
      ['-1', 'must be a number from 0 to 1000000000'],
      ['much', 'must be a number from 0 to 1000000000'],
      ['0.0000001', 'must have at most 6 decimals'],
    ]) {
      const bad = { json: { csv: `${csv}bad,bad@example.org,${cap}\n` } };
      const refused = await admin.refused(400, 'invalid_request', [`${INVITATIONS}/import`, bad]);
      assert.deepEqual(refused.errors, [{ field: 'csv line 5, spend_cap', message: problem }]);
    }
    assert.equal((await admin.expect(200, INVITATIONS)).length, before);
    const json = { csv, spend_cap: 2 };
    const { invitations } = await admin.expect(201, `${INVITATIONS}/import`, { json });
    const link = await admin.expect(201, INVITATIONS, { json: { max_uses: 3, spend_cap: 1 } });
    const made = [...invitations, link, link];
    assert.deepEqual(
      made.map(({ spend_cap }) => spend_cap),
      [7.5, 0, 2, 1, 1],
    );
    const keys = new Map<number, string>();
    for (const [at, { url, username, spend_cap: cap }] of made.entries()) {
      const token = tokenOf(url);
      const body =
        username === null ? joining(token, `of-class-${at}`) : { json: { token, password: PASSWORD } };
      const account = await anyone.expect(201, '/api/join', body);
      const own = anyone.as(account.api_key);
      // The owner can lower it, but not raise it.
      const raised = { method: 'PATCH', json: { cap: 100 } };
      assert.equal((await own.expect(200, '/api/billing/cap', raised)).cap, cap);
      keys.set(cap, account.api_key);
      const { spend_cap } = await admin.expect(200, `/api/admin/accounts/${account.id}`);
      assert.equal(spend_cap, cap);
    }
    const bucket = ['/api/buckets', { json: { name: 'first' } }] as const;
    await anyone.as(keys.get(0)).refused(402, 'spend_cap_reached', [...bucket]);
    await anyone.as(keys.get(7.5)).expect(201, ...bucket);
    const renewed = await admin.expect(200, `${INVITATIONS}/${link.id}/renew`, { json: {} });
    assert.equal(renewed.spend_cap, 1, 'a new link keeps it');
  });
});

describe('in the browser', { skip }, () => {
  let page: Page;
  before(async () => {
    page = await fixture.newPage();
  });

  test('the sign-up page asks for an invitation', async () => {
    await page.goto(`${fixture.cloud.api}/sign-up`);
    await page.getByRole('heading', { name: 'You need an invitation' }).waitFor();
    assert.equal(await page.getByLabel('E-mail address').count(), 0);
    await assertAccessible(page, 'no registration');
  });

  test('an invited person sets a password and is in; two browsers do not both join', async () => {
    const json = { username: 'eve', email: 'eve@example.org', account_expires_at: '2999-07-31 00:00:00' };
    const { url } = await admin.expect(201, INVITATIONS, { json });
    const sent: string[] = [];
    page.on('request', (request) => sent.push(request.url()));
    const late = await fixture.newPage();
    for (const each of [page, late]) {
      await each.goto(url);
      await each.getByText('Your user name: eve').waitFor();
      assert.equal(each.url(), `${fixture.cloud.api}/join`, 'the token leaves the address');
    }
    await page.getByText('The account is open until 2999-07-31 00:00:00 (UTC).').waitFor();
    assert.equal(await page.getByLabel('User name').count(), 0);
    await assertAccessible(page, 'an invitation');
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await page.getByRole('button', { name: 'Create account' }).click();
    await page.getByRole('navigation', { name: 'Main' }).waitFor();
    assert.ok(!sent.some((address) => address.includes(tokenOf(url))), 'no server is sent the token');
    await late.getByLabel('Password', { exact: true }).fill('another password');
    await late.getByRole('button', { name: 'Create account' }).click();
    await late.getByRole('alert').getByText('The invitation is unknown, used').waitFor();
    await late.goto('about:blank');
    await late.goto(url);
    await late.getByRole('heading', { name: 'This invitation does not work' }).waitFor();
    await assertAccessible(late, 'an invitation that was used');
    await late.goto(`${fixture.cloud.api}/join`);
    await late.getByRole('heading', { name: 'This link is incomplete' }).waitFor();
    await late.close();
  });

  test('who has to change the password is led to it by the sign-in', async () => {
    const made = { username: 'olga', email: 'olga@example.org', password: PASSWORD };
    const { id } = await admin.expect(201, '/api/admin/accounts', { json: made });
    const must = { method: 'PATCH', json: { must_change_password: true } };
    await admin.expect(200, `/api/admin/accounts/${id}`, must);
    const olga = await fixture.newPage();
    await olga.goto(`${fixture.cloud.api}/sign-in`);
    await olga.getByLabel('User name').fill('olga');
    await olga.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await olga.getByRole('button', { name: 'Sign in' }).click();
    for (const label of ['New password', 'New password, again'])
      await olga.getByLabel(label, { exact: true }).fill('quite another one');
    await olga.getByRole('button', { name: 'Set password' }).click();
    await olga.getByText('You are signed in as olga.').waitFor();
    await olga.close();
  });

  test('with the link of a class one chooses a name', async () => {
    const { url } = await admin.expect(201, INVITATIONS, { json: { max_uses: 30 } });
    const pupil = await fixture.newPage();
    await pupil.goto(url);
    await pupil.getByLabel('User name').fill('eve');
    await pupil.getByLabel('E-mail address').fill('frank@example.org');
    await pupil.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await pupil.getByRole('button', { name: 'Create account' }).click();
    await pupil.getByText('is taken').first().waitFor();
    await pupil.getByLabel('User name').fill('frank');
    await pupil.getByRole('button', { name: 'Create account' }).click();
    await pupil.getByRole('navigation', { name: 'Main' }).waitFor();
    const [last] = (await admin.expect(200, INVITATIONS)).slice(-1);
    assert.deepEqual([last.state, last.uses], ['open', 1]);
    await pupil.close();
  });

  test('an administrator invites a class by a table on the page, and revokes a link', async () => {
    const json = { username: 'head', email: 'head@example.org', password: PASSWORD, is_admin: true };
    await admin.expect(201, '/api/admin/accounts', { json });
    const head = await fixture.newPage();
    await head.goto(`${fixture.cloud.api}/sign-in`);
    await head.getByLabel('User name').fill('head');
    await head.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await head.getByRole('button', { name: 'Sign in' }).click();
    await head.getByRole('navigation', { name: 'Main' }).waitFor();
    await head.goto(`${fixture.cloud.api}/administration?tab=invitations`);
    const invite = head.getByRole('button', { name: 'Invite', exact: true });
    await invite.first().click();
    const form = head.getByRole('dialog', { name: 'Invite' });
    await assertAccessible(head, 'the form of an invitation');
    await form.getByText('CSV table').click();
    const choose = async (csv: string) => {
      const [chooser] = await Promise.all([
        head.waitForEvent('filechooser'),
        form.getByRole('button', { name: 'Table' }).click(),
      ]);
      await chooser.setFiles({ name: 'class.csv', mimeType: 'text/csv', buffer: Buffer.from(csv) });
      await form.getByRole('button', { name: 'Invite', exact: true }).click();
    };
    await choose('username\npaula\nPaula\n');
    await form.getByText('nobody was invited').first().waitFor();
    await form.getByText('is also on line 2').first().waitFor();
    await choose('username,email\r\npaula,paula@example.org\r\nquentin,quentin@example.org\r\n');
    const shown = head.getByRole('dialog', { name: '2 invitations' });
    const links = String(await shown.locator('pre').textContent());
    assert.match(links, /paula\t\S+#token=\S+\nquentin\t\S+#token=/);
    await assertAccessible(head, 'the links of a class');
    await head.keyboard.press('Escape');
    await head.getByRole('button', { name: 'Revoke quentin' }).click();
    await head.getByRole('button', { name: 'Revoke quentin' }).waitFor({ state: 'detached' });
    await assertAccessible(head, 'the list of invitations');
    const list: { username: string; state: string }[] = await admin.expect(200, INVITATIONS);
    const states = list.slice(-2).map(({ username, state }) => [username, state]);
    assert.deepEqual(states, [
      ['paula', 'open'],
      ['quentin', 'revoked'],
    ]);
    await head.close();
  });
});
