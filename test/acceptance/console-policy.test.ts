/** No page violates its content security policy; also tests the keys of every page. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { makeSetupLink } from '../harness/command.ts';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible } from './console-journey.ts';
import { ConsoleFixture, clientOf, PASSWORD, quiet } from './console-kit.ts';

const skip = noBrowser;

let fixture: ConsoleFixture;
before(async () => {
  if (!skip) fixture = await ConsoleFixture.open({ env: { CLOUDLET_ADMIN_KEY: '' } });
});
after(() => fixture?.close());

/** Violations reported by the browser, in any frame, with the current page. */
async function watched(page: Page): Promise<string[]> {
  const seen: string[] = [];
  await page.exposeFunction('noteViolation', (what: string) => seen.push(what));
  await page.addInitScript(`document.addEventListener('securitypolicyviolation', (event) => {
    window.noteViolation?.(location.pathname + location.search + ': ' + event.violatedDirective + ' ' +
      event.blockedURI + ' ' + event.sample);
  })`);
  return seen;
}

const FILES: Readonly<Record<string, string>> = {
  'a.md': '# Heading\n\n<b style="color:red" onclick="x()">bold</b>\n\n| a | b |\n|---|---|\n| 1 | 2 |\n',
  'b.csv': 'a,b\n1,2\n',
  'c.json': '{"a":1}',
  'd.svg': '<svg xmlns="http://www.w3.org/2000/svg" onload="x()"><style>*{fill:red}</style><rect/></svg>',
  'e.html': '<style>p{color:red}</style><p style="x">text</p><script>x()</script>',
};

/** The first administrator, from the set-up page on. */
async function setUp(page: Page): Promise<void> {
  await page.goto(await makeSetupLink(fixture.cloud.dataDir));
  await page.fill('#username', 'chief');
  await page.fill('#email', 'chief@example.org');
  await page.fill('#password', PASSWORD);
  await page.click('form > button');
  await page.getByRole('link', { name: 'Open the console' }).click();
  await page.getByText('First five minutes').waitFor();
}

async function visit(page: Page, path: string): Promise<void> {
  await page.goto(fixture.cloud.api + path);
  await page.locator('h1, h2, form').first().waitFor();
  await quiet(page);
}

/** Every page, by its path. */
function pagesOf(database: string): string[] {
  const tabs = {
    '/storage/work': [
      ...['links', 'uploads', 'recovery', 'settings'],
      ...['access', 'lifecycle', 'lock', 'cors', 'tags', 'audit'].map((section) => `settings#${section}`),
    ],
    [`/databases/${database}`]: ['connect', 'query', 'tables', 'charts', 'log', 'manage'],
    '/administration': [
      'status',
      'accounts',
      'invitations',
      'machines',
      'plans',
      'prices',
      'revenue',
      'images',
    ],
  };
  return [
    ...['/', '/storage', '/storage/s3', '/storage/s3/encryption-keys', '/storage/work'],
    ...['/machines', '/machines/new', '/databases', '/databases/new', '/billing', '/webhooks', '/recovery'],
    ...['/account', '/reference', '/nowhere-at-all', '/device', '/join'],
    ...Object.entries(tabs).flatMap(([path, names]) => names.map((tab) => `${path}?tab=${tab}`)),
  ];
}

/** Each file with its preview, its versions and a link. */
async function lookAtFiles(page: Page): Promise<void> {
  await visit(page, '/storage/work');
  for (const name of Object.keys(FILES)) {
    await page.getByRole('link', { name, exact: true }).click();
    await page.getByRole('dialog', { name }).getByRole('tab', { name: 'Versions (2)' }).click();
    await quiet(page);
  }
  await page.getByRole('tab', { name: 'Share' }).click();
  await page.getByRole('button', { name: 'Create link' }).click();
  await page.getByRole('img', { name: 'QR code of the link' }).waitFor();
  await page.getByText('The link works only on this computer').waitFor();
  await page
    .getByRole('button', { name: /^End link to/ })
    .first()
    .waitFor();
}

test('no page violates its policy, whatever is shown and typed', { skip }, async () => {
  const page = await fixture.newPage();
  const violations = await watched(page);
  await setUp(page);
  const client = await clientOf(fixture, page);
  await client.call('/api/buckets', { json: { name: 'work', versioning: true } });
  for (const [name, content] of Object.entries(FILES)) {
    await client.upload('work', name, content);
    await client.upload('work', name, `${content}\n`);
  }
  const { body: database } = await client.call('/api/databases', {
    json: { name: 'shop', engine: 'sqlite' },
  });
  const id: string = database.database_id;
  for (const path of pagesOf(id)) await visit(page, path);

  await page.goto(`${fixture.cloud.api}/databases/${id}?tab=query`);
  await page.getByRole('textbox', { name: 'Query' }).click();
  await page.keyboard.type("SELECT 'a' AS word, 1 FROM (SELECT 2) -- comment");
  await page.keyboard.press('ControlOrMeta+Enter');
  // Chromium saves the style of replaced text, and its policy would refuse it.
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.type("SELECT 'b'\n  AS word");
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.insertText('SELECT 3');
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.press('Backspace');
  await page.keyboard.type('SELECT 4');
  await quiet(page);
  await lookAtFiles(page);

  await page.context().clearCookies();
  for (const path of ['/sign-in', '/sign-up', '/reset-password', '/connect']) await visit(page, path);
  assert.deepEqual(violations, []);

  // A test that cannot detect a violation would always pass.
  await page.evaluate(`document.body.insertAdjacentHTML('beforeend', '<p style="color: red">x</p>')`);
  await eventually('a violation is seen', () => /style-src/.test(violations.join()));
  await page.close();
});

test('keys search, find and tell of themselves on every page, and in fields where they can', {
  skip,
}, async () => {
  const page = await fixture.signedUp('typist', '/storage');
  const client = await clientOf(fixture, page);
  await client.call('/api/buckets', { json: { name: 'typed' } });
  await client.upload('typed', 'a.txt', 'a');
  await page.goto(`${fixture.cloud.api}/storage/typed`);
  await page.getByRole('link', { name: 'a.txt' }).waitFor();
  await page.keyboard.press('/');
  const field = page.getByLabel('Search by name');
  await page.locator(':focus').and(field).waitFor();
  await page.keyboard.type('a?/');
  assert.equal(await field.inputValue(), 'a?/', 'in a field they are letters');
  await page.keyboard.press('Control+k');
  const palette = page.getByRole('dialog', { name: 'Search or run a command' });
  await palette.waitFor();
  await page.keyboard.press('Escape');
  await palette.waitFor({ state: 'detached' });
  await field.fill('');
  await page.getByRole('heading', { level: 1 }).focus();
  await page.keyboard.press('?');
  const sheet = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
  await sheet.getByText('Rename').waitFor();
  await assertAccessible(page, 'the sheet', '[aria-modal=true]');
  await page.setViewportSize({ width: 390, height: 800 });
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390);
  await page.keyboard.press('Escape');
  await sheet.waitFor({ state: 'detached' });
  await page.goto(`${fixture.cloud.api}/account`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.keyboard.press('/');
  await palette.waitFor();
  await page.close();
});
