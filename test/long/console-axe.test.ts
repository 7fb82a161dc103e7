/** Every page of the console can be used by everybody, in light and dark, and none is too wide. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { noBrowser } from '../acceptance/browser-kit.ts';
import { axeFaults, ConsoleFixture, PASSWORD } from '../acceptance/console-kit.ts';
import { furnished } from '../acceptance/console-pages.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';

const skip = noBrowser;
const { ONLY, AXE_PICTURES } = process.env;
const SIZES = {
  desk: { width: 1280, height: 900 },
  phone: { width: 390, height: 844 },
} as const;

let fixture: ConsoleFixture;
let paths: readonly string[];
before(async () => {
  if (skip) return;
  fixture = await ConsoleFixture.open();
  const admin = await CheckedClient.open(fixture.cloud.api, ADMIN_KEY);
  const json = { username: 'chief', email: 'chief@example.org', password: PASSWORD, is_admin: true };
  const { api_key } = await admin.expect(201, '/api/admin/accounts', { json });
  const all = await furnished(admin.as(api_key));
  paths = all.filter((path) => ONLY === undefined || path.includes(ONLY));
});
after(() => fixture?.close());

async function signedIn(options: BrowserContextOptions): Promise<Page> {
  const context = await fixture.browser.newContext({ reducedMotion: 'reduce', ...options });
  const page = await fixture.newPage(context);
  await page.goto(`${fixture.cloud.api}/sign-in`);
  await page.locator('[autocomplete=username]').fill('chief');
  await page.locator('[autocomplete=current-password]').fill(PASSWORD);
  await page.keyboard.press('Enter');
  await page.locator('nav').first().waitFor();
  return page;
}

async function settled(page: Page, path: string): Promise<void> {
  await page.goto(fixture.cloud.api + path);
  await eventually(`${path} is shown`, () =>
    page.evaluate(
      `document.querySelector('main h1, iframe') !== null &&
       document.querySelector('main [aria-busy=true], .mantine-Skeleton-root') === null`,
    ),
  );
}

/** Faults of all pages in one size, with both themes. */
async function faultsOf(page: Page, what: string): Promise<string[]> {
  const faults: string[] = [];
  for (const path of paths) {
    await settled(page, path);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      const found = await axeFaults(page, 'html', colorScheme === 'dark');
      faults.push(...found.map((fault) => `${what}, ${colorScheme}, ${path}: ${fault}`));
      if (AXE_PICTURES !== undefined) {
        const name = `${what}-${colorScheme}-${path.replace(/[/?=]+/g, '-')}`;
        await page.screenshot({ path: `${AXE_PICTURES}/${name}.png`, fullPage: true });
      }
    }
    const tooWide = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'));
    if (tooWide > 0) faults.push(`${what}, ${path}: ${tooWide} px wider than the page`);
  }
  return faults;
}

for (const [size, viewport] of Object.entries(SIZES)) {
  test(`every page at a ${size}`, { skip }, async () => {
    const page = await signedIn({ viewport });
    assert.deepEqual(await faultsOf(page, size), []);
    assert.deepEqual(fixture.complaints, []);
    await page.context().close();
  });
}
