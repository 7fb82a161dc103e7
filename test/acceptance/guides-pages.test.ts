/** The guides that need no machine, run as printed. */
import { test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import { GUIDES, runGuide } from './guides-kit.ts';

const skip = notInstalled('curl', 'jq', 'xxd');

for (const guide of GUIDES) {
  test(`${guide} runs as it is printed, in one shell, and leaves nothing`, { skip }, () => runGuide(guide));
}
