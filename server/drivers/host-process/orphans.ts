/**
 * Processes that outlived their cloud, and that no start can adopt any more: the folder of their keeper was
 * removed, with the data directory or without. A moved folder does not count as removed: processes that
 * opened it still have it.
 */
import { readdirSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { KEEPER_NAME, LOCK, LOCK_DESCRIPTOR } from './keeper-shells.ts';
import {
  identify,
  isAlive,
  type ProcessIdentity,
  readProc,
  signalProcess,
  userOf,
} from './process-identity.ts';

interface Orphan {
  /** The folder that was removed. */
  readonly folder: string;
  readonly process: ProcessIdentity;
}

const REMOVED = `/${LOCK} (deleted)`;
const GONE_TRIES = 100;
const GONE_STEP_MS = 20;

/** All orphans on this host that our user may kill. */
export function orphans(): readonly Orphan[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const keepers = new Map<number, string>();
  for (const pid of pids) {
    const folder = removedFolderOf(pid);
    if (folder !== null) keepers.set(Number(pid), folder);
  }
  if (keepers.size === 0) return [];
  return pids.flatMap((pid) => {
    const folder = keepers.get(parentOf(pid) ?? 0);
    const found = folder === undefined ? null : identify(Number(pid));
    return found === null || folder === undefined ? [] : [{ folder, process: { ...found, uid: null } }];
  });
}

/** Kills them, and waits until they are gone. Never rejects. */
export async function endOrphans(warn: (text: string) => void, found = orphans()): Promise<void> {
  for (const {
    folder,
    process: { pid },
  } of found)
    warn(`process ${pid} is killed: its cloud is gone, and ${folder} was removed`);
  for (const { process } of found) signalProcess(process, 'SIGKILL');
  for (let tries = 0; tries < GONE_TRIES && found.some(({ process }) => isAlive(process)); tries++)
    await sleep(GONE_STEP_MS);
}

/** null: not one of our keepers, or its folder exists. */
function removedFolderOf(pid: string): string | null {
  if (userOf(pid) !== process.getuid?.()) return null;
  const isKeeper = readProc(`${pid}/cmdline`)?.split('\0')[2] === KEEPER_NAME;
  const lock = isKeeper ? linkOf(`/proc/${pid}/fd/${LOCK_DESCRIPTOR}`) : null;
  return lock?.endsWith(REMOVED) ? lock.slice(0, -REMOVED.length) : null;
}

function parentOf(pid: string): number | null {
  const stat = readProc(`${pid}/stat`);
  return stat === null ? null : Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
}

function linkOf(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}
