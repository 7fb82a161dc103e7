/** Moves a running process to another folder. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { promisify } from 'node:util';
import { AppError } from '../../platform/errors.ts';
import { patienceMs } from '../../platform/host/host-facts.ts';
import { findHostProgram, hostPath } from '../../platform/host/host-programs.ts';
import type { Isolation } from './isolation.ts';
import { openPaths } from './open-paths.ts';
import { isAlive, type ProcessIdentity } from './process-identity.ts';
import { AT, ROOT } from './view-script.ts';

const run = promisify(execFile);
const MOUNT_MS = 30_000;

/** Whether this host can. */
export function canMoveViews(isolation: Isolation): boolean {
  if (!isolation.hasView || needsMover(isolation)) return true;
  return findHostProgram('nsenter') !== null && findHostProgram('mount') !== null;
}

/**
 * Whether a process must be started with a mover: a program that enters a namespace of users as a user other
 * than root loses the right to mount.
 */
export function needsMover({ hasView, inUserNamespace }: Isolation): boolean {
  return hasView && inUserNamespace;
}

/**
 * Returns the path by which the process sees that folder of its user from now on; the process must change to
 * it by itself. The rest of its view stays. `ground`: as in ProcessesDeps. `mover`: of a process that was
 * started with one. Throws if the process has ended, or the host does not allow this.
 */
export async function moveView(
  identity: ProcessIdentity,
  {
    isolation,
    folder,
    ground,
    mover,
  }: {
    readonly isolation: Isolation;
    readonly folder: string;
    readonly ground: string;
    readonly mover: Socket | null;
  },
): Promise<string> {
  if (!isolation.hasView) {
    if (identity.uid !== null) openPaths(ground, [folder]);
    return folder;
  }
  assertAlive(identity);
  if (needsMover(isolation)) {
    await askMover(mover, folder);
    assertAlive(identity);
    return AT;
  }
  const [nsenter, mount] = [findHostProgram('nsenter'), findHostProgram('mount')];
  if (nsenter === null || mount === null) throw new Error('nsenter or mount is not installed');
  // The root of its view is a folder of that space of mounts, which has the rest of this host above it.
  const words = [`--mount=/proc/${identity.pid}/ns/mnt`, '--', mount, '--no-mtab', '--rbind'];
  const options = { timeout: patienceMs(MOUNT_MS), cwd: '/', env: { PATH: hostPath() } };
  await run(nsenter, [...words, folder, `${ROOT}${AT}`], options);
  assertAlive(identity);
  return AT;
}

/** It exits silently if it cannot. */
async function askMover(mover: Socket | null, folder: string): Promise<void> {
  if (mover === null || mover.readableEnded || mover.destroyed || folder.includes('\n'))
    throw new Error('the process has no mover for that folder');
  mover.on('error', () => {}).end(`${folder}\n`);
  const late = AbortSignal.timeout(patienceMs(MOUNT_MS));
  const [said] = await Promise.race([
    once(mover, 'data', { signal: late }),
    once(mover, 'end', { signal: late }),
  ]);
  if (String(said) !== 'moved\n') throw new Error('the folder could not be mounted');
}

function assertAlive(identity: ProcessIdentity): void {
  if (!isAlive(identity)) throw new AppError('engine_unavailable', 'The process has ended');
}
