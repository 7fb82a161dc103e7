/** The client signs in with a real browser, or with a code; and the attacks of others meanwhile. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import { after, before, describe, test } from 'node:test';
import type { BrowserContext, Page } from 'playwright-core';
import { Client } from '../harness/client.ts';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import { CliUser } from './cli-kit.ts';
import { assertAccessible } from './console-journey.ts';
import { ConsoleFixture, clientOf } from './console-kit.ts';

const skip = noBrowser;
let fixture: ConsoleFixture;
let person: Page;
let account: Client;
const user = new CliUser();
before(async () => {
  if (skip) return;
  fixture = await ConsoleFixture.open();
  person = await fixture.signedUp('ada');
  account = await clientOf(fixture, person);
});
const children: ChildProcess[] = [];
after(async () => {
  for (const child of children) child.kill('SIGKILL');
  user.remove();
  await fixture?.close();
});

const keys = async () => (await account.call('/api/account/access-keys')).body as { name: string }[];
const context = (): BrowserContext => person.context();

/** A command that waits for a person: its output so far, and its end. */
function waiting(args: readonly string[]) {
  const child: ChildProcess = user.start(args);
  children.push(child);
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text) => {
      said += text;
    });
  const found = (pattern: RegExp) =>
    eventually(`${args.join(' ')}: ${said}`, () => {
      assert.equal(child.exitCode, null, said);
      return pattern.exec(said)?.[1];
    });
  const ended = once(child, 'close').then(([code]) => ({ code, said }));
  return { address: () => found(/^ {2}(http\S+)$/m), code: () => found(/^ {2}([A-Z-]{9})$/m), ended, child };
}

describe('by browser', { skip }, () => {
  test('a person agrees, and the key is in the list of the console', async () => {
    const login = waiting(['login', fixture.cloud.api, '--days', '30']);
    const address = await login.address();
    const page = await fixture.newPage(context());
    const asked: string[] = [];
    page.on('request', (each) => asked.push(`${each.url()} ${each.headers().referer ?? ''}`));
    await page.goto(address);
    const allow = page.getByRole('button', { name: 'Allow' });
    await allow.waitFor();
    assert.match(await page.getByRole('main').innerText(), /CLI on .*ada.*all the rights/s);
    assert.ok(await allow.isDisabled(), 'it can be clicked before it could be read');
    assert.deepEqual((await keys()).length, 0, 'approved by itself');
    await assertAccessible(page, 'the question');
    await allow.click();
    await page.getByRole('heading', { name: 'The program is signed in' }).waitFor();
    const { code, said } = await login.ended;
    assert.equal(code, 0, said);
    assert.match(said, /Signed in to \S+ as ada, with the key "CLI on .*" until \d{4}-/);
    assert.match(await user.ok(['whoami']), /^ada </);
    assert.match((await keys())[0]?.name ?? '', /^CLI on /);
    // The code was in one address, on this computer only.
    const leaks = asked.filter(
      (each) => /code=/.test(each) && !/^http:\/\/127\.0\.0\.1:\d+\/callback\?/.test(each),
    );
    assert.deepEqual(leaks, []);
    assert.ok(!asked.some((each) => / http\S*code=/.test(each)), 'a referrer has the code');
    await page.goBack();
    assert.doesNotMatch(page.url(), /code=/, 'the history has the code');
    await user.ok(['logout']);
    assert.equal((await keys()).length, 0);
    await page.close();
  });

  test('whoever is not signed in does that first', async () => {
    const login = waiting(['login', fixture.cloud.api]);
    const page = await fixture.newPage();
    await page.goto(await login.address());
    await page.getByLabel('User name').fill('ada');
    await page.getByLabel('Password', { exact: true }).fill('correct horse battery');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('button', { name: 'Refuse' }).click();
    const { code, said } = await login.ended;
    assert.deepEqual([code, /sign-in was refused/.test(said)], [4, true], said);
    assert.equal((await keys()).length, 0);
    await page.context().close();
  });

  test('the listener answers to nothing but its own request', async () => {
    const login = waiting(['login', fixture.cloud.api]);
    const fields = new URLSearchParams(new URL(await login.address()).hash.slice(1));
    const [redirect = '', state = ''] = [fields.get('redirect'), fields.get('state')] as string[];
    const ask = (url: string, headers = {}) =>
      new Promise<number>((resolve) => {
        request(url, { headers, agent: false }, (answer) => resolve(answer.resume().statusCode ?? 0)).end();
      });
    assert.equal(await ask(`${redirect}?code=x&state=guessed`), 404);
    assert.equal(await ask(`${redirect}?error=access_denied&state=guessed`), 404, 'ends the log-in');
    assert.equal(
      await ask(`${redirect}?code=x&state=${state}`, { host: 'evil.example' }),
      404,
      'rebound name',
    );
    // An injected code of another program: it does not match this one's verifier.
    const challenge = createHash('sha256').update('another verifier').digest('base64url');
    const injected = await account.call('/api/login/approvals', {
      json: { redirect_uri: redirect, code_challenge: challenge, ...METHOD },
    });
    assert.equal(injected.status, 201);
    assert.equal(await ask(`${redirect}?code=${injected.body.code}&state=${state}`), 303);
    const { code, said } = await login.ended;
    assert.deepEqual([code, /unknown, used or expired/.test(said)], [1, true], said);
    assert.ok(!said.includes(injected.body.code));
  });

  test('the pages are shown in no frame, and other sites approve nothing', async () => {
    for (const path of ['/connect', '/device']) {
      const page = await fetch(fixture.cloud.api + path, { headers: { accept: 'text/html' } });
      assert.match(page.headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/);
      assert.equal(page.headers.get('referrer-policy'), 'no-referrer');
    }
    const cookies = await context().cookies();
    const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join('; ');
    const body = { redirect_uri: 'http://127.0.0.1:1/callback', code_challenge: 'x'.repeat(43), ...METHOD };
    for (const site of ['cross-site', 'same-site']) {
      const headers = { cookie, 'sec-fetch-site': site, origin: 'https://evil.example' };
      const anyone = new Client(fixture.cloud.api);
      for (const [path, json] of [
        ['/api/login/approvals', body],
        ['/api/login/device/decide', { user_code: 'BBBB-BBBB', approve: true }],
      ] as const) {
        const { status, body: problem } = await anyone.call(path, { headers, json });
        assert.deepEqual([status, problem.code], [403, 'cross_site_request'], path);
      }
    }
  });

  test('Ctrl-C ends it', async () => {
    const login = waiting(['login', fixture.cloud.api]);
    await login.address();
    login.child.kill('SIGINT');
    assert.equal((await login.ended).code, 130);
  });
});

describe('copied from the console', { skip }, () => {
  test('commands do what the page shows', async () => {
    const page = await fixture.signedUp('eve', '/storage');
    const eve = await clientOf(fixture, page);
    await eve.call('/api/buckets', { json: { name: 'eves-photos' } });
    await eve.upload('eves-photos', "it's/a b.txt", 'words');
    const env = { CLOUDLET_URL: fixture.cloud.api, CLOUDLET_API_KEY: eve.key ?? '' };
    const copied = async (path: string) => {
      await page.goto(fixture.cloud.api + path);
      const button = page.getByRole('button', { name: /^Copy as command: / });
      const label = (await button.first().getAttribute('aria-label')) ?? '';
      const words = label.replace('Copy as command: cloudlet ', '');
      const split = execFileSync('sh', ['-c', `printf '%s\\n' ${words}`], { encoding: 'utf8' });
      return user.ok(split.trim().split('\n'), { env });
    };
    assert.match(await copied('/storage'), /eves-photos/);
    assert.match(await copied(`/storage/eves-photos?prefix=${encodeURIComponent("it's/")}`), /a b\.txt/);
    assert.match(await copied('/machines'), /NAME/);
    assert.match(await copied('/account'), /NAME/);
    await page.context().close();
  });
});

const METHOD = { code_challenge_method: 'S256', name: 'CLI on elsewhere', scopes: ['*'] };

describe('with a code', { skip }, () => {
  test('a person types it, while a stranger asks for codes and guesses', async () => {
    const login = waiting(['login', fixture.cloud.api, '--device', '--scopes', 'storage:read,account:*']);
    const code = await login.code();
    const flood = await Promise.all(Array.from({ length: 80 }, () => strangersCode()));
    assert.deepEqual([...new Set(flood)].sort(), [201, 429], 'an address may have some, and no more');
    const stranger = await new Client(fixture.cloud.api).newUser();
    const guesses = [];
    for (let i = 0; i < 8; i++) guesses.push(await guess(stranger, 'BBBB-BBBB'));
    assert.deepEqual(guesses, [404, 404, 404, 404, 404, 429, 429, 429]);
    assert.equal(await guess(stranger, code), 429, 'the right one does not help any more');

    const page = await fixture.newPage(context());
    await page.goto(`${fixture.cloud.api}/device`);
    await page.getByLabel('Code', { exact: true }).fill('XXXXXXXX');
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText('No log-in request has this code').waitFor();
    await page.getByLabel('Code', { exact: true }).fill(code.toLowerCase());
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByRole('button', { name: 'Allow' }).waitFor();
    assert.match(await page.getByRole('main').innerText(), /127\.0\.0\.1.*storage:read.*account:\*/s);
    await assertAccessible(page, 'the question');
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.getByRole('heading', { name: 'The program is signed in' }).waitFor();
    const { code: exit, said } = await login.ended;
    assert.equal(exit, 0, said);
    assert.match(said, /as ada, with the key "CLI on /);
    await user.fails(4, ['mb', 'not-allowed-to']);
    await user.ok(['logout']);
    await page.close();
  });

  test('another account that learns the code cannot take the key, nor decide twice', async () => {
    const asked = await account.call('/api/login/device', { json: { name: 'CLI on x', scopes: ['*'] } });
    const { user_code, device_code } = asked.body;
    const decide = (client: Client) =>
      client.call('/api/login/device/decide', { json: { user_code, approve: true, expires_in: 60 } });
    const eve = await new Client(fixture.cloud.api).newUser();
    assert.equal((await decide(account)).status, 200);
    assert.deepEqual([(await decide(eve)).status, (await decide(account)).status], [404, 404]);
    const poll = (code: string) =>
      new Client(fixture.cloud.api).call('/api/login/device/key', { json: { device_code: code } });
    const wrong = randomBytes(32).toString('base64url');
    assert.equal((await poll(wrong)).body.code, 'invalid_grant');
    const { status, body } = await poll(device_code);
    assert.deepEqual([status, body.username], [201, 'ada']);
    assert.equal((await poll(device_code)).body.code, 'invalid_grant', 'a second key');
    await account.call(`/api/account/access-keys/${body.id}`, { method: 'DELETE' });
  });
});

const guess = async (client: Client, user_code: string) =>
  (await client.call('/api/login/device/find', { json: { user_code } })).status;

/** Requests from another address of this computer. */
function strangersCode(): Promise<number> {
  const { hostname, port } = new URL(fixture.cloud.api);
  const headers = { 'content-type': 'application/json' };
  const options = { hostname, port, path: '/api/login/device', method: 'POST', headers, agent: false };
  return new Promise((resolve, reject) => {
    request({ ...options, localAddress: '127.0.0.2' }, (answer) => resolve(answer.resume().statusCode ?? 0))
      .on('error', reject)
      .end(JSON.stringify({ name: 'CLI on laptop', scopes: ['*'] }));
  });
}
