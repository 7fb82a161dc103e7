/** The set-up page for a person, in a real browser. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { notInstalled } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { makeSetupLink } from '../harness/command.ts';
import { launchBrowser, noBrowser } from './browser-kit.ts';

const skip = noBrowser;
const PASSWORD = 'correct horse battery';

let cloud: CloudProcess;
let browser: Browser;
let context: BrowserContext;
let page: Page;
/** Errors reported by the browser: a script or style blocked by the policy, or an exception. */
const complaints: string[] = [];
before(async () => {
  if (skip) return;
  cloud = await CloudProcess.start({ env: { CLOUDLET_ADMIN_KEY: '' } });
  browser = await launchBrowser();
  context = await browser.newContext();
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: cloud.api });
  page = await context.newPage();
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (said) => {
    // Responses of 4xx are reported there too.
    const isRefusal = said.text().startsWith('Failed to load resource');
    if (said.type() === 'error' && !isRefusal) complaints.push(said.text());
  });
});
after(async () => {
  if (skip) return;
  await browser?.close();
  await cloud?.stop();
});

const textOf = async (selector: string) => (await page.locator(selector).innerText()).trim();

async function fillIn(fields: Record<string, string>): Promise<void> {
  for (const [name, value] of Object.entries(fields)) await page.fill(`#${name}`, value);
}

/** Presses the button, and resolves with the status of the answer. */
async function submit(): Promise<number> {
  const [response] = await Promise.all([
    page.waitForResponse((answer) => answer.url().endsWith('/api/setup')),
    page.click('form > button'),
  ]);
  return response.status();
}

/** The page reports that the link is not valid, before any input is possible. */
async function isEnded(url: string): Promise<boolean> {
  await page.goto(url);
  return (await page.locator('form').count()) === 0 && /does not work/.test(await textOf('h1'));
}

test('a link that is no good says so at once, with the way out', { skip }, async () => {
  const link = await makeSetupLink(cloud.dataDir);
  for (const bad of [`${cloud.api}/setup`, `${cloud.api}/setup?token=`, `${link}x`, link.slice(0, -1)]) {
    assert.ok(await isEnded(bad), bad);
  }
  assert.match(
    await textOf('main'),
    /bin\/cloudlet admin setup-link[\s\S]*to get a new link[\s\S]*bin\/cloudlet admin create/,
  );
  await page.goto(link);
  assert.equal(await page.locator('form').count(), 1, 'the right one was not used up by looking');
});

test('each field shows its rule, and what is wrong with it', { skip }, async () => {
  await page.goto(await makeSetupLink(cloud.dataDir));
  for (const [name, rule] of [
    ['username', /3 to 64 characters/],
    ['email', /log in with it/],
    ['password', /8 to 256 characters/],
  ] as const) {
    assert.match(await textOf(`#${name}-rule`), rule);
    const described = await page.getAttribute(`#${name}`, 'aria-describedby');
    assert.equal(described, `${name}-rule ${name}-wrong`);
  }
  await fillIn({ username: 'the chief', email: 'chief@example.org', password: PASSWORD });
  assert.equal(await submit(), 400);
  await page.locator('#username-wrong', { hasText: /^User name must be 3 to 64/ }).waitFor();
  assert.deepEqual([await textOf('#email-wrong'), await textOf('#password-wrong')], ['', '']);
  assert.equal(await page.getAttribute('#username', 'aria-invalid'), 'true');
  assert.equal(await page.locator(':focus').getAttribute('id'), 'username');
  await page.check('#show');
  assert.equal(await page.getAttribute('#password', 'type'), 'text');
  await page.uncheck('#show');
  assert.equal(await page.getAttribute('#password', 'type'), 'password');
});

const withoutShell = skip || notInstalled('curl', 'sh');
test('the administrator gets the key, a copy of it, and commands that work', {
  skip: withoutShell,
}, async () => {
  const link = await makeSetupLink(cloud.dataDir);
  await page.goto(link);
  await fillIn({ username: 'chief', email: 'chief@example.org', password: PASSWORD });
  assert.equal(await submit(), 201);
  await page.waitForSelector('#done:not([hidden])');
  assert.equal(await page.locator('form').isVisible(), false);
  const key = await textOf('#key');
  assert.match(key, /^clk_[0-9A-Za-z]{38}$/);
  const read = () => page.evaluate('navigator.clipboard.readText()');
  await page.click('#copy');
  await page.locator('#copied', { hasText: /^Copied$/ }).waitFor();
  assert.equal(await read(), key);
  assert.doesNotMatch(page.url(), /token/);
  assert.match(await textOf('#done'), /admin key --username chief/);

  const commands = await page.locator('pre.commands').allInnerTexts();
  assert.ok(commands.join('\n').includes(`export CLOUD='${cloud.api}'`));
  const cwd = mkdtempSync(join(tmpdir(), 'cloudlet-steps-'));
  const script = `set -e; alias curl='curl -sf'\n${commands.join('\n')}`;
  const ran = spawnSync('sh', ['-c', script], { cwd, encoding: 'utf8' });
  rmSync(cwd, { recursive: true });
  assert.equal(ran.status, 0, `${ran.stdout}\n${ran.stderr}`);
  const chief = new Client(cloud.api, key);
  const files = (await chief.call('/api/buckets/first-bucket/files')).body;
  assert.deepEqual(
    files.map(({ name }: { name: string }) => name),
    ['hello.txt'],
  );
  const accounts = (await chief.call('/api/admin/accounts')).body;
  assert.deepEqual(
    accounts.map(({ username }: { username: string }) => username),
    ['chief', 'ada'],
  );
  assert.ok(await isEnded(link), 'the link was used');
});

test('without the clipboard of https the key is copied all the same', { skip }, async () => {
  const other = await CloudProcess.start({ env: { CLOUDLET_ADMIN_KEY: '' } });
  try {
    await page.goto(await makeSetupLink(other.dataDir));
    await page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })");
    await fillIn({ username: 'chief', email: 'chief@example.org', password: PASSWORD });
    assert.equal(await submit(), 201);
    await page.waitForSelector('#done:not([hidden])');
    const key = await textOf('#key');
    await page.click('#copy');
    await page.locator('#copied', { hasText: /^Copied$/ }).waitFor();
    await page.goto(`${cloud.api}/setup`);
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), key);
  } finally {
    await other.stop();
  }
});

test('the browser had nothing to complain of', { skip }, () => {
  assert.deepEqual(complaints, []);
});
