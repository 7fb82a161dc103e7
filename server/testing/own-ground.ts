/**
 * Host resources of tests, derived from the process id, so that parallel tests and other clouds do not
 * collide.
 */
import { statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname } from 'node:path';
import { CloudClaim } from '../drivers/host-network/cloud-claim.ts';
import { whyNoOtherUsers } from '../platform/host/other-users.ts';

const NETWORKS = 7680;
const USER_RANGES = 600;
/** For machines; the same number after them is for databases. */
const USERS_EACH = 1_100_000;

/**
 * A network for machines, of 1,022 addresses, in 127.128.0.0 to 127.247.255.255: far from 127.80.0.0/16, the
 * default of clouds, and from addresses where QEMU listens. Several clouds of a process share it.
 */
export function testPool(): string {
  const network = process.pid % NETWORKS;
  return `127.${128 + (network >> 6)}.${(network & 63) * 4}.0/22`;
}

/** The claim of the test's cloud on this host. */
export function testClaim(): CloudClaim {
  return new CloudClaim({ cloudId: `cld-test${process.pid}`, uidBase: testUidBase(), dataDir: tmpdir() });
}

/** Why guests of tests run as our own user; null: each has its own user. */
export const noUsers = whyNoOtherUsers({ first: testUidBase(), count: USERS_EACH }, tmpdir());
/** The same for the `skip` of tests. */
export const noGuestUsers = noUsers?.problem ?? false;

/** Why no other user can run the code of this clone; false: it can. For the `skip` of tests. */
export const noOtherReaders = noGuestUsers || closedTo(import.meta.dirname);

function closedTo(path: string): string | false {
  if ((statSync(path).mode & 0o001) === 0) return `${path} does not let other users pass`;
  return path === '/' ? false : closedTo(dirname(path));
}

/** First of the user ids for guests. */
export function testUidBase(pid = process.pid): number {
  return 660_000_000 + (pid % USER_RANGES) * 2 * USERS_EACH;
}

/** First of the user ids for databases. */
export function testDatabaseUidBase(): number {
  return testUidBase() + USERS_EACH;
}
