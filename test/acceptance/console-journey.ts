/** One person's journey through the console, step by step. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { CheckedClient } from '../harness/checked-client.ts';
import { ConsoleFixture, seriousFaults } from './console-kit.ts';

/** ms; guests and servers start meanwhile, on machines that have other work. */
const PATIENCE_MS = 90_000;

export interface Traveller {
  readonly fixture: ConsoleFixture;
  readonly page: Page;
  /** The API, with the key of who is signed in. */
  readonly user: CheckedClient;
}

/** A cloud, a browser, and somebody who is signed up and looks at `path`. */
export async function openJourney(path: string): Promise<Traveller> {
  const fixture = await ConsoleFixture.open();
  const page = await fixture.signedUp('ada', path);
  page.setDefaultTimeout(PATIENCE_MS);
  const account = await page.request.get(`${fixture.cloud.api}/api/account`);
  const { api_key } = (await account.json()) as { api_key: string };
  return { fixture, page, user: await CheckedClient.open(fixture.cloud.api, api_key) };
}

/** Steps that go on where the one before ended; none is tried after one that failed. */
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

/** What is open can be used by everybody, in both themes. */
export async function assertAccessible(page: Page, what: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    assert.deepEqual(await seriousFaults(page), [], `${what}, ${colorScheme}`);
  }
}
