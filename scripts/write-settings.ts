/** Writes the settings into docs/settings.md, between its markers. Run it after a change of config.ts. */
import { readFileSync, writeFileSync } from 'node:fs';
import { renderSettings } from '../server/config/config.ts';

export const SETTINGS_PAGE = new URL('../docs/settings.md', import.meta.url);

const BEGIN = '<!-- settings -->';
const END = '<!-- /settings -->';

/** `page` with the current settings between the markers. Throws unless it has exactly one pair of them. */
export function withSettings(page: string): string {
  const [before, inside, ...more] = page.split(BEGIN);
  const [, after, ...rest] = (inside ?? '').split(END);
  if (before === undefined || after === undefined || more.length > 0 || rest.length > 0) {
    throw new Error(`docs/settings.md must contain one ${BEGIN}, followed by one ${END}`);
  }
  return `${before}${BEGIN}\n${renderSettings()}\n${END}${after}`;
}

if (import.meta.main) writeFileSync(SETTINGS_PAGE, withSettings(readFileSync(SETTINGS_PAGE, 'utf8')));
