import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Isolation, namespaceCommand } from './isolation.ts';

/** A host set up like systemd's, whose disk at $1/disk is unmounted while the given command runs. */
const HOST = `set -e
cd "$1"; shift
mount --make-rshared /
mount -t tmpfs disk disk
"$@" /bin/sh -c 'echo >up; read -r line <go; grep -c " $PWD/disk " /proc/self/mountinfo' &
read -r line <up
umount disk
echo >go
wait $!`;
const VIEW: Isolation = { hasView: true, hasNoNetwork: false, inUserNamespace: false, problem: '' };
const isAble = process.getuid?.() === 0 && spawnSync('unshare', ['--mount', '--pid', 'true']).status === 0;

test('a disk that the host unmounts is not held by a process that sees less', {
  skip: isAble ? false : 'needs root and mount namespaces',
}, (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-isolation-'));
  t.after(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'disk'));
  spawnSync('mkfifo', [join(folder, 'up'), join(folder, 'go')]);
  const words = ['--mount', 'sh', '-c', HOST, 'sh', folder, ...namespaceCommand(VIEW, 'host')];
  const { stdout, stderr } = spawnSync('unshare', words, { encoding: 'utf8', timeout: 60_000 });
  assert.equal(stdout, '0\n', stderr);
});
