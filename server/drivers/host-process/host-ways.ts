/** How far this host lets us keep a foreign process from everything else: it is tried. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { hostPath, hostProgram } from '../../platform/host-programs.ts';
import { setprivProgram } from './launch-script.ts';
import { AT, viewScript } from './view-script.ts';

const run = promisify(execFile);
const ASK_MS = 10_000;
/** Root's number within its namespace of users: servers refuse to run as root. */
const NOT_ROOT = 1000;
/** Every user may read all of it anyway. */
const HARMLESS_FOLDER = '/usr';

export interface Way {
  /** Processes see their own folder and the system's programs alone, and no process but those they make. */
  readonly hasView: boolean;
  /** Processes can be cut off from all networks. */
  readonly hasNoNetwork: boolean;
  /** Both within a namespace of users, which has but one. */
  readonly inUserNamespace: boolean;
  /** Why processes are kept apart less than they could be, for humans; empty: they are not. */
  readonly problem: string;
}

const isRoot = process.getuid?.() === 0;
const MAPPED = isRoot ? [`--map-user=${NOT_ROOT}`, `--map-group=${NOT_ROOT}`] : ['--map-current-user'];
const ROOT = { inUserNamespace: false };
const USER = { inUserNamespace: true };
const ALL = { hasView: true, hasNoNetwork: true, problem: '' };
const VIEW = { hasView: true, hasNoNetwork: false, problem: 'this host lets Cloudlet make no networks' };
const NET = {
  hasView: false,
  hasNoNetwork: true,
  problem:
    'this host lets Cloudlet make no views of its files: ' +
    'run it as root with CAP_SYS_ADMIN and CAP_SYS_CHROOT, or where every user may make namespaces',
};
const NONE: Way = { ...NET, ...ROOT, hasNoNetwork: false };
const WAYS: readonly Way[] = [
  { ...ALL, ...ROOT },
  { ...VIEW, ...ROOT },
  { ...ALL, ...USER },
  { ...VIEW, ...USER },
  { ...NET, ...ROOT },
  { ...NET, ...USER },
];

/** Words before a command that runs as apart as that; none: there is nothing to be done. */
export function apart(way: Way, network: 'none' | 'host'): string[] {
  const { hasView, hasNoNetwork, inUserNamespace } = way;
  const hasNet = network === 'none' && hasNoNetwork;
  if (!hasView && !hasNet && !(inUserNamespace && isRoot)) return [];
  return [
    hostProgram('unshare'),
    ...(inUserNamespace ? ['--user', ...MAPPED, '--keep-caps'] : []),
    // Slave: a disk that the host unmounts is not held by processes that never saw it.
    ...(hasView ? ['--mount', '--propagation', 'slave', '--pid'] : []),
    ...(hasNet ? ['--net'] : []),
    '--',
  ];
}

/** The number that a process of our own user sees as its user, if it is put into namespaces. */
export function seenUser({ inUserNamespace }: Way): number {
  return isRoot && inUserNamespace ? NOT_ROOT : (process.getuid?.() ?? 0);
}

/** The best way there is. `needsUsers`: for programs that change their user. Never rejects. */
export async function findWay(needsUsers: boolean): Promise<Way> {
  const ways = needsUsers ? WAYS.filter((way) => !way.inUserNamespace) : WAYS;
  // A namespace of users takes root's powers over this host from a process that cannot have another user.
  const ordered = isRoot && !needsUsers ? ways.toSorted(byUserNamespace) : ways;
  for (const way of ordered) if (await works(way)) return way;
  return NONE;
}

function byUserNamespace(a: Way, b: Way): number {
  return Number(b.inUserNamespace) - Number(a.inUserNamespace);
}

async function works(way: Way): Promise<boolean> {
  const view = { folder: HARMLESS_FOLDER, readOnly: [], temporaryMb: 1, uid: seenUser(way) };
  try {
    const [program = '', ...words] = apart(way, 'none');
    const enter = `exec ${hostProgram('unshare')} --root=. --wd=${AT} -- ${setprivProgram()} --no-new-privs true`;
    const script = way.hasView ? `(set -e\n${viewScript(view)}\n${enter}) & wait $!` : 'true';
    const options = { timeout: ASK_MS, env: { PATH: hostPath() } };
    await run(program, [...words, '/bin/sh', '-c', script], options);
    return true;
  } catch {
    return false;
  }
}
