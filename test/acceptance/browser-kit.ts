/** The real browser of the acceptance tests. */
import { type Browser, chromium } from 'playwright-core';
import { notInstalled } from '../../scripts/installed.ts';

const CHROMIUM = '/usr/bin/chromium';
const BROWSER_ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Why there is no browser, or false. */
export const noBrowser = notInstalled('chromium');

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, args: BROWSER_ARGS });
}
