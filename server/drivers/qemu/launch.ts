/** Starts the process of a guest, paused, and brings it to where its processor runs. */
import * as fs from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '../../platform/errors.ts';
import { hostProgram } from '../../platform/host-programs.ts';
import { withoutPowers } from '../../platform/other-users.ts';
import { ENDED, supervise } from '../host-process/ending-note.ts';
import type { KeptShells } from '../host-process/kept-shells.ts';
import { isThere, yieldMemoryFirst } from '../host-process/process-identity.ts';
import { BALLOON_ID, withTap } from './arguments.ts';
import { type GuestIdentity, type GuestRun, identifyGuest } from './guest-run.ts';

export interface LaunchOptions {
  readonly program: string;
  readonly args: readonly string[];
  /** Ours; the end of the process will be written down in it. */
  readonly folder: string;
  /** In it: the working directory of the process, in which all its files are. */
  readonly workFolder: string;
  /** Takes what it says, path. */
  readonly log: string;
  /** The user and group it runs as; null: ours. */
  readonly user: { readonly uid: number; readonly gid: number } | null;
  /** A device of this host that the program is handed open; null: none. */
  readonly tap: string | null;
}

const POLL_MS = 2;
/** Between looks whether the program has taken the place of what starts it. */
const BECOMING_MS = 1;
const READY_MS = 15_000;
const STATS_SECONDS = 5;

/**
 * Resolves when the program runs. User and group are changed before it begins, because its sandbox forbids it
 * to do so itself; it gets nothing of our environment, and a session of its own, so that it outlives us, as
 * does the shell that waits for it.
 */
export async function spawnQemu(shells: KeptShells, options: LaunchOptions): Promise<GuestIdentity> {
  const { program, args, folder, workFolder, log, user, tap } = options;
  const words = [...(tap === null ? [] : withTap(tap)), ...asUser(user), program, ...args];
  fs.rmSync(join(folder, ENDED), { force: true });
  fs.closeSync(fs.openSync(log, 'w', 0o600));
  const shell = await shells.take();
  const output = await shell.run(
    supervise({ folder: resolve(folder), workFolder, log: resolve(log), words }),
  );
  const identity = await becoming(Number(output), user?.uid ?? null);
  if (identity === null) {
    // One that runs, and is no guest's, is nobody's.
    if (shell.isAlive) killGroup(shell.pid);
    throw new Error('the process ended at once');
  }
  yieldMemoryFirst(identity.pid);
  return identity;
}

function asUser(user: LaunchOptions['user']): string[] {
  const options =
    user === null
      ? withoutPowers()
      : ['--reuid', String(user.uid), '--regid', String(user.gid), '--clear-groups'];
  return options.length === 0 ? [] : [hostProgram('setpriv'), ...options, '--'];
}

/** Identity of a process about to become a guest's; null when it ended before it was, or does not. */
async function becoming(pid: number, uid: number | null): Promise<GuestIdentity | null> {
  for (let waited = 0; waited <= READY_MS && isThere(pid); waited += BECOMING_MS) {
    const identity = seen(pid);
    if (identity !== null) return { ...identity, uid };
    await sleep(BECOMING_MS);
  }
  return null;
}

/** null also when we may open no more files just now. */
function seen(pid: number): ReturnType<typeof identifyGuest> {
  try {
    return identifyGuest(pid);
  } catch {
    return null;
  }
}

function killGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL');
  } catch {
    // It ended meanwhile.
  }
}

/**
 * Waits until both QMP sockets answer, `connect` is done and the guest is `guarded`, sets what can only be
 * set now, and lets the processor run. Resolves with what `connect` did. Throws when the process ends, or is
 * not there after 15 s, and what the two do.
 */
export async function letGuestRun<T>(
  run: GuestRun,
  guarded: Promise<void>,
  connect: () => Promise<T>,
): Promise<T> {
  const [result] = await Promise.all([connected(run).then(connect), guarded]);
  const interval = { property: 'guest-stats-polling-interval', value: STATS_SECONDS };
  const balloon = { path: `/machine/peripheral/${BALLOON_ID}`, ...interval };
  // Sent together, done in this order: the guest does not wait for us to hear each answer, and we do not wait
  // for answers which its processor, once it runs, would delay.
  const [, , status] = await Promise.all([
    run.command('qom-set', balloon),
    run.command('cont'),
    runStatus(run),
  ]);
  // `paused`: it ran, and the disk of this host ran full just then.
  if (status !== 'running' && status !== 'paused')
    throw new AppError('internal_error', `the guest is ${status} after its start`);
  return result;
}

async function connected(run: GuestRun): Promise<void> {
  for (let waited = 0; ; waited += POLL_MS) {
    try {
      await run.connect();
      return;
    } catch (error) {
      if (!run.isAlive || waited > READY_MS) throw error;
      await sleep(POLL_MS);
    }
  }
}

/** What QEMU calls it: `prelaunch`, `running`, `paused`, … Rejects with QmpError. */
export async function runStatus(run: GuestRun, timeoutMs?: number): Promise<string> {
  const answer = (await run.command('query-status', {}, timeoutMs)) as { status?: unknown } | null;
  return String(answer?.status);
}
