/** README and the guides that need machines run as they are printed. */
import { test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import { runGuide } from './guides-kit.ts';
import { cannotRunGuests } from './vms-kit.ts';

const skip = cannotRunGuests() || notInstalled('curl', 'jq', 'ssh', 'ssh-keygen');

for (const guide of ['README.md', 'docs/machines.md', 'docs/billing.md', 'docs/webhooks.md']) {
  test(`${guide} runs as it is printed, in one shell, and leaves nothing`, { skip }, () => runGuide(guide));
}
