/**
 * Whether Cloudlet may run processes as other users: if so, each guest gets its own user. Root of a
 * host may; root of a user namespace, as in rootless containers, has few user ids, and root of a
 * container may lack capabilities.
 */
import { spawnSync } from 'node:child_process';
import { chownSync, mkdtempSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { patienceMs } from './host-facts.ts';
import { hostPath } from './host-programs.ts';

export interface UserRange {
  /** First user id, and first group id. */
  readonly first: number;
  readonly count: number;
}

/** Rights of this process, as the kernel reports them. */
export interface OwnRights {
  /** -1: unknown. */
  readonly uid: number;
  /** Text of `/proc/self/uid_map` and `gid_map`; empty: user namespaces are not supported. */
  readonly uidMap: string;
  readonly gidMap: string;
  /** Hexadecimal, of `/proc/self/status`; empty: unknown. */
  readonly capabilities: string;
}

export interface NoOtherUsers {
  readonly problem: string;
  readonly fix: string;
}

/** Capabilities and their bits: creating and reading users' folders, and ending users' processes. */
const NEEDED = {
  CAP_CHOWN: 0n,
  CAP_DAC_OVERRIDE: 1n,
  CAP_FOWNER: 3n,
  CAP_KILL: 5n,
  CAP_SETGID: 6n,
  CAP_SETUID: 7n,
} as const;
/** Needed to drop capabilities for good. */
const CAP_SETPCAP = 8n;
const TRY_MS = 5000;
const SHARED = "machines share Cloudlet's own user";
const AS_ROOT = 'run Cloudlet as root of the host';

/** Why not; null: it may. In a user namespace it is tried once, in that directory, which must exist. */
export function whyNoOtherUsers(range: UserRange, directory: string): NoOtherUsers | null {
  const rights = ownRights();
  const why = judgeRights(rights, range);
  if (why !== null || isWholeHost(rights)) return why;
  const code = tried(range.first, directory);
  return code === null
    ? null
    : {
        problem: `${SHARED} because this user namespace does not let it change users (${code})`,
        fix: AS_ROOT,
      };
}

/** The result that is known without trying. */
export function judgeRights(rights: OwnRights, { first, count }: UserRange): NoOtherUsers | null {
  const { uid, uidMap, gidMap, capabilities } = rights;
  if (uid !== 0) return { problem: `${SHARED} because it is not root`, fix: 'run Cloudlet as root' };
  const missing = Object.entries(NEEDED)
    .filter(([, bit]) => capabilities !== '' && !has(capabilities, bit))
    .map(([name]) => name)
    .join(', ');
  if (missing !== '')
    return { problem: `${SHARED} because it lacks ${missing}`, fix: `give Cloudlet ${missing}` };
  for (const [kind, map] of [['user', uidMap] as const, ['group', gidMap] as const]) {
    if (map === '' || covers(map, first, first + count)) continue;
    const ids = `${kind} ids ${first} to ${first + count - 1}`;
    const fix = `${AS_ROOT}, or give the namespace these ids (CLOUDLET_VM_UID_BASE names the first)`;
    return { problem: `${SHARED} because this user namespace has no ${ids}`, fix };
  }
  return null;
}

/** Options of `setpriv` for a program that runs as our user, without root's capabilities. */
export function withoutPowers({ uid, capabilities } = ownRights()): string[] {
  const mayGiveUp = uid === 0 && capabilities !== '' && has(capabilities, CAP_SETPCAP);
  return mayGiveUp ? ['--bounding-set=-all', '--inh-caps=-all'] : [];
}

/** `capabilities` in hexadecimal. */
function has(capabilities: string, bit: bigint): boolean {
  return ((BigInt(`0x${capabilities}`) >> bit) & 1n) === 1n;
}

function ownRights(): OwnRights {
  const capabilities = /^CapEff:\s*([0-9a-f]+)$/m.exec(read('/proc/self/status'))?.[1] ?? '';
  const [uidMap, gidMap] = [read('/proc/self/uid_map'), read('/proc/self/gid_map')];
  return { uid: process.getuid?.() ?? -1, uidMap, gidMap, capabilities };
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Whether ids from `from` to before `to` are mapped in the namespace. */
function covers(map: string, from: number, to: number): boolean {
  let next = from;
  for (const { first, end } of linesOf(map)) if (first <= next && next < end) next = end;
  return next >= to;
}

function linesOf(map: string): { first: number; end: number }[] {
  const lines = map.trim().split('\n');
  const ranges = lines.map((line) => {
    const [first = 0, , count = 0] = line.trim().split(/\s+/).map(Number);
    return { first, end: first + count };
  });
  return ranges.sort((a, b) => a.first - b.first);
}

function isWholeHost({ uidMap }: OwnRights): boolean {
  return uidMap === '' || /^\s*0\s+0\s+4294967295\s*$/.test(uidMap);
}

/** The error of a trial; null: none. */
function tried(user: number, directory: string): string | null {
  let folder: string | undefined;
  try {
    folder = mkdtempSync(join(directory, '.users-'));
    chownSync(folder, user, user);
    const words = ['--reuid', String(user), '--regid', String(user), '--clear-groups', '--', 'true'];
    const { status, error } = spawnSync('setpriv', words, {
      env: { PATH: hostPath() },
      timeout: patienceMs(TRY_MS),
    });
    const code = (error as NodeJS.ErrnoException | undefined)?.code;
    // The start reports the missing package.
    if (code === 'ENOENT') return null;
    return status === 0 ? null : (code ?? 'setpriv fails');
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown error';
  } finally {
    if (folder !== undefined) rmdirSync(folder);
  }
}
