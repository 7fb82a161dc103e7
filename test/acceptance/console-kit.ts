/** The console in a real browser, with a signed-in user. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { launchBrowser } from './browser-kit.ts';

const ROOT = join(import.meta.dirname, '../..');
const { oldBuilds } = (await import(join(ROOT, 'scripts/builds.js'))) as {
  oldBuilds: (root: string) => readonly string[];
};

/** Fails if build/console was not built from the current sources. */
export function assertConsoleBuilt(): void {
  assert.ok(
    !oldBuilds(ROOT).includes('console'),
    'build/console is out of date: run `node scripts/builds.js`',
  );
}

export const PASSWORD = 'correct horse battery';

/** A cloud, a browser, and the errors that the browser reported. */
export class ConsoleFixture {
  readonly cloud: CloudProcess;
  readonly browser: Browser;
  /** Blocked by the policy, thrown, or requested from another host. */
  readonly complaints: string[] = [];

  private constructor(cloud: CloudProcess, browser: Browser) {
    this.cloud = cloud;
    this.browser = browser;
  }

  static async open(options: Parameters<typeof CloudProcess.start>[0] = {}): Promise<ConsoleFixture> {
    assertConsoleBuilt();
    return new ConsoleFixture(await CloudProcess.start(options), await launchBrowser());
  }

  /** For a running cloud; its close() ends the cloud, too. */
  static async of(cloud: CloudProcess): Promise<ConsoleFixture> {
    assertConsoleBuilt();
    return new ConsoleFixture(cloud, await launchBrowser());
  }

  async close(): Promise<void> {
    await this.browser.close();
    await this.cloud.stop();
  }

  /** A page whose errors are recorded. */
  async newPage(context?: BrowserContext): Promise<Page> {
    const page = await (context ?? (await this.browser.newContext())).newPage();
    // The browser shows PDFs with its own extension.
    const own = [this.cloud.api, this.cloud.data, 'blob:', 'data:', 'chrome-extension:', 'chrome:'];
    page.on('pageerror', (error) => this.complaints.push(String(error)));
    page.on('request', (request) => {
      const url = request.url();
      if (!own.some((start) => url.startsWith(start))) this.complaints.push(`asked ${url}`);
    });
    page.on('console', (said) => {
      // It shows refusals too, and that the cloud cannot be reached.
      const isRefusal =
        /^(?:Failed to load resource|WebSocket connection to|Error: A part of the console could not be loaded)/.test(
          said.text(),
        );
      if (said.type() === 'error' && !isRefusal) this.complaints.push(said.text());
    });
    return page;
  }

  /** Creates a new account and shows `path`. */
  async signedUp(username: string, path = '/'): Promise<Page> {
    const page = await this.newPage();
    await page.goto(`${this.cloud.api}/sign-up?next=${encodeURIComponent(path)}`);
    await page.getByLabel('User name').fill(username);
    await page.getByLabel('E-mail address').fill(`${username}@example.org`);
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await page.getByRole('button', { name: 'Create an account' }).click();
    await page.getByRole('navigation').waitFor();
    return page;
  }
}

/** Calls the API in the page, with cookie and token of its session. Throws on a refusal. */
export async function askIn(page: Page, path: string, method = 'GET'): Promise<unknown> {
  const ask = async ([url, verb]: readonly [string, string]) => {
    const headers = { 'cloudlet-session': localStorage.getItem('cloudlet-session') ?? '' };
    const answer = await fetch(url, { method: verb, headers });
    return { isOk: answer.ok, text: await answer.text() };
  };
  const { isOk, text } = await page.evaluate(ask, [path, method] as const);
  assert.ok(isOk, text);
  return JSON.parse(text);
}

/** The API as the signed-in user. */
export async function clientOf(fixture: ConsoleFixture, page: Page): Promise<Client> {
  const { api_key } = (await askIn(page, '/api/account')) as { api_key: string };
  return new Client(fixture.cloud.api, api_key);
}

/** Waits until a page has no requests, at most 3 s: under load that moment may never come. */
export const quiet = (page: Page): Promise<void> =>
  page.waitForLoadState('networkidle', { timeout: 3000 }).catch(() => undefined);

/** Resolves when the tray shows this. */
export const uploaded = (page: Page, count: number): Promise<void> =>
  page.getByText(`${count} of ${count} uploaded`, { exact: true }).waitFor();

/** Writes files to the disk, until this process ends; returns the paths of those, and of folders, to drop. */
export function writtenFiles(files: Readonly<Record<string, string>>): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-drop-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  return [...new Set(Object.keys(files).map((name) => join(folder, name.split('/')[0] ?? '')))];
}

/**
 * Drops files of the disk onto the middle of the page, by the browser's own input events; names with `/`
 * belong to a dropped folder.
 */
export async function dropFiles(page: Page, files: Readonly<Record<string, string>>): Promise<void> {
  const data = { items: [], files: writtenFiles(files), dragOperationsMask: 1 };
  const { width, height } = page.viewportSize() ?? { width: 0, height: 0 };
  const session = await page.context().newCDPSession(page);
  for (const type of ['dragEnter', 'dragOver', 'drop'] as const) {
    await session.send('Input.dispatchDragEvent', { type, x: width / 2, y: height / 2, data });
  }
  await session.detach();
}
const AXE = readFileSync(join(ROOT, 'node_modules/axe-core/axe.min.js'), 'utf8');

/**
 * Runs in the page until nothing has faded or moved for a while: semi-transparent text has too little
 * contrast. A transition may start a few frames after its element appears. Endless spinners do not count.
 */
const STILL = `(async () => {
  const isMoving = ({ playState, effect }) =>
    playState === 'running' && effect?.getComputedTiming().endTime < Infinity;
  for (let quiet = 0; quiet < 6; quiet = document.getAnimations().some(isMoving) ? 0 : quiet + 1) {
    await new Promise((resolve) => setTimeout(resolve, 16));
  }
})()`;

/** A page of any browser; its expressions result in a string, a number, true or false. */
export interface Evaluates {
  evaluate(expression: string): Promise<unknown>;
}

/** The rules of axe-core whose results differ by theme. */
const COLOUR_RULES = ['color-contrast', 'link-in-text-block'];

/**
 * All findings of axe-core, minor ones too: rule, impact and place. `inside`: a CSS selector; default: the
 * page. `onlyColours`: for a page that was checked in the other theme.
 */
export async function axeFaults(page: Evaluates, inside = 'html', onlyColours = false): Promise<string[]> {
  await page.evaluate(STILL);
  if (!(await page.evaluate(`'axe' in window`))) await page.evaluate(`${AXE}; 0`);
  const rules = { rules: { 'target-size': { enabled: true } } };
  // Collecting the places of passed checks would take half of the time.
  const options = { ...(onlyColours ? { runOnly: COLOUR_RULES } : rules), resultTypes: ['violations'] };
  const asked = `'${inside}', ${JSON.stringify(options)}`;
  const faults = await page.evaluate(`axe.run(${asked}).then(({ violations }) => JSON.stringify(violations
    .flatMap(({ id, impact, nodes }) => nodes.map(({ target, failureSummary }) =>
      id + ' (' + impact + ') at ' + target + ': ' + failureSummary))))`);
  return JSON.parse(String(faults)) as string[];
}
