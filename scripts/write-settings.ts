/** Writes the table of settings into README.md, between its markers. Run it after a change of config.ts. */
import { readFileSync, writeFileSync } from 'node:fs';
import { renderSettings } from '../server/config/config.ts';

export const README = new URL('../README.md', import.meta.url);

const BEGIN = '<!-- settings -->';
const END = '<!-- /settings -->';

/** `readme` with the settings of today between the markers. Throws unless it has exactly one pair of them. */
export function withSettings(readme: string): string {
  const [before, inside, ...more] = readme.split(BEGIN);
  const [, after, ...rest] = (inside ?? '').split(END);
  if (before === undefined || after === undefined || more.length > 0 || rest.length > 0) {
    throw new Error(`README.md needs one ${BEGIN} and, after it, one ${END}`);
  }
  return `${before}${BEGIN}\n${renderSettings()}\n${END}${after}`;
}

if (import.meta.main) writeFileSync(README, withSettings(readFileSync(README, 'utf8')));
