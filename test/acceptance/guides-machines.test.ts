/** The guides that need machines, run as printed. */
import { test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import { GUIDES_WITH_MACHINES, runGuide } from './guides-kit.ts';
import { cannotRunGuests } from './vms-kit.ts';

const skip = cannotRunGuests() || notInstalled('curl', 'jq', 'ssh', 'ssh-keygen');

for (const guide of GUIDES_WITH_MACHINES) {
  test(`${guide} runs as it is printed, in one shell, and leaves nothing`, { skip }, () => runGuide(guide));
}
