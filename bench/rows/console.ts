/**
 * The console in a real browser: its loading time, its scrolling, and the resources that the process needs
 * for it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { launchBrowser, noBrowser } from '../../test/acceptance/browser-kit.ts';
import { Client } from '../../test/harness/client.ts';
import { fillBucket } from '../filling.ts';
import { statusBytes } from '../process-figures.ts';
import { median } from '../ratios.ts';
import { formatNumber, skippedRow } from '../table.ts';
import {
  type Cloud,
  createBucket,
  type Measurement,
  type Row,
  type RunOptions,
  withCloud,
} from '../workshop.ts';

const LOAD = { work: 'console: first load until usable, cold cache', target: '≤ 1.5 s', most: 1.5 };
const MEMORY = { work: 'console: memory of the process for it', target: '≤ 10 MB', most: 10e6 };
const SCROLL = { work: 'console: scrolling a listing', target: '≥ 50 frames/s', least: 50 };
/** One step of scrolling, px: a wheel turned fast. */
const STEP_PX = 300;
const FRAMES = 300;
/** A frame that took longer was visible for two or more. */
const DROPPED_MS = 25;
const SETTLED_MS = 3000;
const PASSWORD = 'correct horse battery';

interface Visitor {
  readonly cloud: Cloud;
  readonly username: string;
  /** A browser without any cached state; the caller closes it. */
  readonly newContext: (options?: BrowserContextOptions) => Promise<BrowserContext>;
}

async function signIn({ cloud, username, newContext }: Visitor): Promise<BrowserContext> {
  const context = await newContext();
  const page = await context.newPage();
  await page.goto(`${cloud.process.api}/sign-in`);
  await page.getByLabel('User name or e-mail address').fill(username);
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('First five minutes').waitFor();
  await page.close();
  return context;
}

/** Seconds of each load, for a signed-in user with an empty cache. */
async function timeLoads(visitor: Visitor, rounds: number): Promise<number[]> {
  const signedIn = await signIn(visitor);
  // Also the token of the session, which the page keeps.
  const storageState = await signedIn.storageState();
  await signedIn.close();
  const seconds: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const context = await visitor.newContext({ storageState });
    const page = await context.newPage();
    const began = performance.now();
    await page.goto(visitor.cloud.process.api);
    await page.getByText('First five minutes').waitFor();
    seconds.push((performance.now() - began) / 1000);
    await context.close();
  }
  return seconds;
}

async function loading(visitor: Visitor, rounds: number): Promise<Row[]> {
  const { pid } = visitor.cloud.process;
  // The API's own memory is not part of the console.
  for (let call = 0; call < 50; call++) await visitor.cloud.client.call('/api/account');
  await sleep(SETTLED_MS);
  const before = statusBytes(pid, 'VmRSS');
  const seconds = await timeLoads(visitor, rounds);
  await sleep(SETTLED_MS);
  const added = statusBytes(pid, 'VmRSS') - before;
  const middle = median(seconds);
  const spread = `${Math.min(...seconds).toFixed(2)}–${Math.max(...seconds).toFixed(2)}`;
  return [
    {
      work: LOAD.work,
      target: LOAD.target,
      reached: `**${middle.toFixed(2)} s** (${spread})`,
      isMet: middle <= LOAD.most,
      detail: `${rounds} loads of the overview over loopback`,
    },
    {
      work: MEMORY.work,
      target: MEMORY.target,
      reached: `**${(added / 1e6).toFixed(1)} MB**`,
      isMet: added <= MEMORY.most,
      detail: `resident after ${rounds} loads and a sign-in, against before them`,
    },
  ];
}

/** ms between the frames of a page that scrolls down. */
async function frameTimes(page: Page): Promise<number[]> {
  const times = await page.evaluate(`new Promise((done) => {
    const times = [];
    let last = performance.now();
    const step = (now) => {
      times.push(now - last);
      last = now;
      window.scrollBy(0, ${STEP_PX});
      if (times.length < ${FRAMES}) requestAnimationFrame(step);
      else done(times.slice(2));
    };
    requestAnimationFrame(step);
  })`);
  return times as number[];
}

const perSecond = (times: readonly number[]) => (times.length / times.reduce((a, b) => a + b)) * 1000;

async function scrolling(visitor: Visitor, objects: number, rounds: number): Promise<Row> {
  const context = await signIn(visitor);
  const plain = await context.newPage();
  await plain.setContent(`${'<p>a row</p>'.repeat(3000)}<div style="height: 1000000px"></div>`);
  const listing = await context.newPage();
  const frames = { plain: [] as number[], listing: [] as number[] };
  const rates: number[] = [];
  for (let round = 0; round < rounds; round++) {
    await plain.bringToFront();
    frames.plain.push(...(await frameTimes(plain)));
    await listing.bringToFront();
    await listing.goto(`${visitor.cloud.process.api}/storage/many`);
    await listing.getByRole('link', { name: 'file-00000000.txt' }).waitFor();
    const times = await frameTimes(listing);
    rates.push(perSecond(times));
    frames.listing.push(...times);
  }
  await context.close();
  const rate = median(rates);
  const dropped = (times: readonly number[]) => times.filter((ms) => ms > DROPPED_MS).length;
  return {
    work: `${SCROLL.work} of ${formatNumber(objects)} objects`,
    target: SCROLL.target,
    reached: `**${rate.toFixed(1)} frames/s** (${Math.min(...rates).toFixed(1)}–${Math.max(...rates).toFixed(1)})`,
    isMet: rate >= SCROLL.least,
    detail:
      `${dropped(frames.listing)} of ${frames.listing.length} frames dropped; of a plain page ` +
      `${dropped(frames.plain)}, at ${perSecond(frames.plain).toFixed(1)} frames/s`,
  };
}

async function browse(options: RunOptions): Promise<Row[]> {
  if (noBrowser)
    return [LOAD, MEMORY, SCROLL].map(({ work, target }) => skippedRow(work, target, noBrowser || ''));
  const objects = options.quick ? 100_000 : 1_000_000;
  const rounds = options.quick ? 3 : 7;
  return withCloud(options, async (cloud) => {
    const { process } = cloud;
    const { username, api_key } = await new Client(process.api).register();
    await createBucket(new Client(process.api, api_key), { name: 'many' });
    await process.stop();
    fillBucket(process.dataDir, 'many', { objects, versions: () => 1, folders: 0 });
    await process.start();
    const browser = await launchBrowser();
    try {
      const newContext: Visitor['newContext'] = (options) =>
        browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
      const visitor = { cloud: { ...cloud, client: new Client(process.api, api_key) }, username, newContext };
      return [...(await loading(visitor, rounds)), await scrolling(visitor, objects, rounds)];
    } finally {
      await browser.close();
    }
  });
}

export const CONSOLE: readonly Measurement[] = [{ name: 'console', run: browse }];
