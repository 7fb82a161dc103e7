/** The console in a real browser, as a person who is signed in. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { launchBrowser } from './browser-kit.ts';

const ROOT = join(import.meta.dirname, '../..');
const { isConsoleCurrent } = (await import(join(ROOT, 'scripts/console-build.js'))) as {
  isConsoleCurrent: (root: string) => boolean;
};

/** Fails when build/console is not of the present sources: what is tested must be what is there. */
export function assertConsoleBuilt(): void {
  assert.ok(isConsoleCurrent(ROOT), 'build/console is out of date: run `node scripts/console-build.js`');
}

export const PASSWORD = 'correct horse battery';

/** A cloud, a browser, and what the browser complained of. */
export class ConsoleFixture {
  readonly cloud: CloudProcess;
  readonly browser: Browser;
  /** Blocked by the policy, thrown, or asked of another host. */
  readonly complaints: string[] = [];

  private constructor(cloud: CloudProcess, browser: Browser) {
    this.cloud = cloud;
    this.browser = browser;
  }

  static async open(options: Parameters<typeof CloudProcess.start>[0] = {}): Promise<ConsoleFixture> {
    assertConsoleBuilt();
    return new ConsoleFixture(await CloudProcess.start(options), await launchBrowser());
  }

  async close(): Promise<void> {
    await this.browser.close();
    await this.cloud.stop();
  }

  /** A page whose complaints are noted. */
  async newPage(context?: BrowserContext): Promise<Page> {
    const page = await (context ?? (await this.browser.newContext())).newPage();
    // The browser shows PDFs with an extension of its own.
    const own = [this.cloud.api, this.cloud.data, 'blob:', 'data:', 'chrome-extension:', 'chrome:'];
    page.on('pageerror', (error) => this.complaints.push(String(error)));
    page.on('request', (request) => {
      const url = request.url();
      if (!own.some((start) => url.startsWith(start))) this.complaints.push(`asked ${url}`);
    });
    page.on('console', (said) => {
      // Refusals are said there too, and that the cloud is out of reach.
      const isRefusal =
        /^(?:Failed to load resource|WebSocket connection to|Error: A part of the console did not come)/.test(
          said.text(),
        );
      if (said.type() === 'error' && !isRefusal) this.complaints.push(said.text());
    });
    return page;
  }

  /** Signs a new account up and shows `path`. */
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

/** The API as the person that is signed in. */
export async function clientOf(fixture: ConsoleFixture, page: Page): Promise<Client> {
  const key = await page.evaluate("fetch('/api/account').then((a) => a.json()).then((a) => a.api_key)");
  return new Client(fixture.cloud.api, String(key));
}

/** Waits until a page asks for nothing, 3 s at most: under load that moment may never come. */
export const quiet = (page: Page): Promise<void> =>
  page.waitForLoadState('networkidle', { timeout: 3000 }).catch(() => undefined);

/** Resolves when the tray says so. */
export const uploaded = (page: Page, count: number): Promise<void> =>
  page.getByText(`${count} of ${count} uploaded`, { exact: true }).waitFor();

/** Drops files onto the page as a hand would; names with `/` are those of a dropped folder. */
export async function dropFiles(page: Page, files: Readonly<Record<string, string>>): Promise<void> {
  await page.evaluate(`(${dropInPage})(${JSON.stringify(Object.entries(files))})`);
}

/** Entries of a made-up drop know no folders; its list of files does. */
const dropInPage = `(files) => {
  const list = files.map(([name, content]) => {
    const file = new File([content], name.split('/').at(-1), { type: 'text/plain' });
    if (name.includes('/')) Object.defineProperty(file, 'webkitRelativePath', { value: name });
    return file;
  });
  const drop = new DragEvent('drop', { bubbles: true, cancelable: true });
  Object.defineProperty(drop, 'dataTransfer', { value: { types: ['Files'], items: [], files: list } });
  window.dispatchEvent(drop);
}`;
const AXE = readFileSync(join(ROOT, 'node_modules/axe-core/axe.min.js'), 'utf8');

/** What axe-core calls serious or critical: rule and place. `inside`: a CSS selector; default: the page. */
export async function seriousFaults(page: Page, inside = 'html'): Promise<string[]> {
  await page.evaluate(AXE);
  const rules = { 'target-size': { enabled: true } };
  const asked = `'${inside}', ${JSON.stringify({ rules })}`;
  const faults = await page.evaluate(`axe.run(${asked}).then(({ violations }) => violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => id + ' at ' + target + ': ' + failureSummary)))`);
  return faults as string[];
}
