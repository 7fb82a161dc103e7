/** A person's journey through the console, step by step. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Locator, Page, Request } from 'playwright-core';
import { CheckedClient } from '../harness/checked-client.ts';
import { askIn, axeFaults, ConsoleFixture } from './console-kit.ts';

/** ms; guests and servers start meanwhile, on a busy host. */
const PATIENCE_MS = 90_000;

export interface Traveller {
  readonly fixture: ConsoleFixture;
  readonly page: Page;
  /** The API, with the key of the signed-in user. */
  readonly user: CheckedClient;
}

/** A cloud, a browser, and a new user who looks at `path`. */
export async function openJourney(path: string): Promise<Traveller> {
  const fixture = await ConsoleFixture.open();
  const page = await fixture.signedUp('ada', path);
  page.setDefaultTimeout(PATIENCE_MS);
  const { api_key } = (await askIn(page, '/api/account')) as { api_key: string };
  return { fixture, page, user: await CheckedClient.open(fixture.cloud.api, api_key) };
}

/** Steps that continue where the previous one ended; none runs after a failed one. */
export function stepsOf(skip: string | false) {
  let isBroken = false;
  return (name: string, walk: () => Promise<void>) =>
    test(name, { skip }, async (context) => {
      if (isBroken) return context.skip('a step before has failed');
      isBroken = true;
      await walk();
      isBroken = false;
    });
}

/** The open page is accessible in both themes; `inside`: a CSS selector, default: the page. */
export async function assertAccessible(page: Page, what: string, inside?: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    const faults = await axeFaults(page, inside, colorScheme === 'dark');
    assert.deepEqual(faults, [], `${what}, ${colorScheme}`);
  }
}

const WINDOWS = ':is([role=dialog], [role=menu])';

/**
 * The keyboard opens a menu or a dialog with a button or link, and the items of a menu one after the other.
 * Each is accessible and has the focus; Escape closes the last, and the element that opened the first gets
 * the focus back.
 */
export async function assertOpens(page: Page, name: string, ...items: readonly string[]): Promise<void> {
  const opener = await openByKeys(page, [name, ...items]);
  await page.keyboard.press('Escape');
  await assertBackAt(page, opener);
}

/**
 * Like assertOpens, for a confirmation before a deletion: the focus is on Cancel, so Enter right after it
 * opened closes it, and no change is sent to the cloud.
 */
export async function assertAsks(page: Page, name: string, ...items: readonly string[]): Promise<void> {
  const opener = await openByKeys(page, [name, ...items]);
  const changes: string[] = [];
  const note = (request: Request) => {
    if (request.method() !== 'GET') changes.push(`${request.method()} ${request.url()}`);
  };
  page.on('request', note);
  await page
    .locator(':focus')
    .and(page.getByRole('button', { name: 'Cancel', exact: true }))
    .waitFor();
  await page.keyboard.press('Enter');
  await assertBackAt(page, opener);
  page.off('request', note);
  assert.deepEqual(changes, [], `Enter in the question of ${name}`);
}

async function openByKeys(page: Page, [name = '', ...items]: readonly string[]): Promise<Locator> {
  const named = { name, exact: true };
  const opener = page.getByRole('button', named).or(page.getByRole('link', named)).first();
  const isOpen = async (what: string) => {
    await page
      .locator(':focus')
      .and(page.locator(`${WINDOWS} *`))
      .waitFor();
    await assertAccessible(page, what, WINDOWS);
  };
  // Text that is fading in has too little contrast.
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await opener.press('Enter');
  await isOpen(name);
  for (const item of items) {
    const entry = page.getByRole('menuitem', { name: item, exact: true });
    await entry.press('Enter');
    await entry.waitFor({ state: 'detached' });
    await isOpen(item);
  }
  return opener;
}

async function assertBackAt(page: Page, opener: Locator): Promise<void> {
  await page.locator(WINDOWS).waitFor({ state: 'detached' });
  await page.locator(':focus').and(opener).waitFor();
}

/** Answers the open confirmation: types the requested name, and presses Enter there. */
export async function typeName(page: Page, name: string): Promise<void> {
  const field = page.getByRole('dialog').getByLabel(`Type ${name} to confirm`);
  await field.fill(`${name}-not`);
  await page.keyboard.press('Enter');
  await field.fill(name);
  await page.keyboard.press('Enter');
}
