/** Public addresses of this host, in a network that the test creates. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { notInstalled } from '../../../scripts/installed.ts';

const CHILD = fileURLToPath(new URL('../../testing/own-host-child.ts', import.meta.url));
/** An ordinary user becomes root in a user namespace for this. */
const UNSHARE = ['--map-root-user', '--net', '--mount'];

function cannotMakeNetworks(): string | false {
  const missing = notInstalled('unshare', 'ip', 'mount', 'sh');
  if (missing) return missing;
  const { status } = spawnSync('unshare', [...UNSHARE, 'ip', 'link', 'set', 'lo', 'up']);
  return status === 0 ? false : 'this host gives no network namespaces';
}

test('addresses of this host are not reached, however public', { skip: cannotMakeNetworks() }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-hosts-'));
  const hosts = join(directory, 'hosts');
  writeFileSync(hosts, '8.8.6.1 own.test\n9.9.9.9 allowed.test\n8.8.6.1 both.test\n9.9.9.9 both.test\n');
  const script = 'mount --bind "$0" /etc/hosts && exec "$@"';
  const own = ['8.8.6.1', '134743553', 'own.test', '[2600::1]', '8.8.9.7'];
  const allowed = ['9.9.9.9', 'allowed.test', 'both.test'];
  const words = [...UNSHARE, 'sh', '-c', script, hosts, process.execPath, CHILD, ...own, ...allowed];
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { stdout, stderr } = spawnSync('unshare', words, { env, encoding: 'utf8' });
  rmSync(directory, { recursive: true });
  assert.match(stdout, /^\{/, stderr);
  const { outcomes, seen, answers } = JSON.parse(stdout);
  for (const host of [...own, 'redirect'])
    assert.match(outcomes[host], /^forbidden: .* outside this host$/, host);
  for (const host of allowed) assert.equal(outcomes[host], '200', host);
  assert.ok(answers.every((status: number) => status === 200));
  // Those of the child's own fetch come last.
  const reached = seen.slice(0, -answers.length);
  assert.deepEqual(reached, [...allowed, '9.9.9.9']);
});
