import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { notInstalled } from '../../../../scripts/installed.ts';
import { noDevices } from '../../../testing/kvm-hosts.ts';
import { testUidBase } from '../../../testing/own-ground.ts';
import { TAP_FD, withTap } from '../arguments.ts';

/** A host where only root may open the device of all taps, as without udev, with one tap of root. */
const HOST = `set -e
mount -t tmpfs none /dev/net; mknod -m 600 /dev/net/tun c 10 200
ip tuntap add dev clt1 mode tap user 0
exec "$@" 3>&-`;

function onHost(words: readonly string[]) {
  const all = ['--net', '--mount', '--propagation', 'private', 'sh', '-c', HOST, 'sh', ...words];
  return spawnSync('unshare', all, { encoding: 'utf8' });
}

const skip = notInstalled('ip', 'setpriv', 'perl', 'mount') || noDevices;

test('a user who may not open the device gets his tap of it, and can take no other', { skip }, () => {
  const uid = String(testUidBase());
  const asUser = ['setpriv', '--reuid', uid, '--regid', uid, '--clear-groups', '--'];
  const handed = onHost([...withTap('clt1'), ...asUser, 'cat', `/proc/self/fdinfo/${TAP_FD}`]);
  assert.deepEqual([handed.status, handed.stderr], [0, '']);
  assert.match(handed.stdout, /^iff:\s*clt1$/m);
  const barred = onHost([...asUser, ...withTap('clt1'), 'true']);
  assert.equal(barred.stderr, 'the tap device cannot be opened: Permission denied\n');
  const other = onHost([...withTap('clt1'), ...asUser, ...withTap('clt1'), 'true']);
  assert.match(other.stderr, /^the tap device cannot be opened/);
});
