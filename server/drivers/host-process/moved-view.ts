/** Moves a running process to another folder. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { AppError } from '../../platform/errors.ts';
import { findHostProgram, hostPath } from '../../platform/host/host-programs.ts';
import type { Isolation } from './isolation.ts';
import { openPaths } from './open-paths.ts';
import { isAlive, type ProcessIdentity } from './process-identity.ts';
import { AT, ROOT } from './view-script.ts';

const run = promisify(execFile);
const MOUNT_MS = 30_000;

/**
 * Whether this host can. In a namespace of users it cannot: a program that enters it as a user other than
 * root loses the right to mount.
 */
export function canMoveViews({ hasView, inUserNamespace }: Isolation): boolean {
  if (!hasView) return true;
  return !inUserNamespace && findHostProgram('nsenter') !== null && findHostProgram('mount') !== null;
}

/**
 * The path by which the process sees that folder, its user's, from now on; it must go there by itself. What
 * else it sees stays. `ground`: as in ProcessesDeps. Throws when it has ended, or the host does not let us.
 */
export async function moveView(
  identity: ProcessIdentity,
  {
    isolation,
    folder,
    ground,
  }: { readonly isolation: Isolation; readonly folder: string; readonly ground: string },
): Promise<string> {
  if (!isolation.hasView) {
    if (identity.uid !== null) openPaths(ground, [folder]);
    return folder;
  }
  const [nsenter, mount] = [findHostProgram('nsenter'), findHostProgram('mount')];
  if (nsenter === null || mount === null) throw new Error('nsenter or mount is not installed');
  // The root of its view is a folder of that space of mounts, which has the rest of this host above it.
  const words = [`--mount=/proc/${identity.pid}/ns/mnt`, '--', mount, '--no-mtab', '--rbind'];
  assertAlive(identity);
  const options = { timeout: MOUNT_MS, cwd: '/', env: { PATH: hostPath() } };
  await run(nsenter, [...words, folder, `${ROOT}${AT}`], options);
  assertAlive(identity);
  return AT;
}

function assertAlive(identity: ProcessIdentity): void {
  if (!isAlive(identity)) throw new AppError('engine_unavailable', 'The process has ended');
}
