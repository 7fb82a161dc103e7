/** The isolation of foreign processes that this host allows, determined by trying it. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { patienceMs } from '../../platform/host/host-facts.ts';
import { hostPath, hostProgram } from '../../platform/host/host-programs.ts';
import { setprivProgram } from './keeper-shells.ts';
import { AT, viewScript } from './view-script.ts';

const run = promisify(execFile);
const ASK_MS = 10_000;
/** Root's number within its user namespace: servers refuse to run as root. */
const NOT_ROOT = 1000;
/** Readable by every user anyway. */
const HARMLESS_FOLDER = '/usr';

export interface Isolation {
  /** Processes see only their folder, the system's programs, and their own processes. */
  readonly hasView: boolean;
  /** Processes can be cut off from all networks. */
  readonly hasNoNetwork: boolean;
  /** Both within a user namespace, which has a single user. */
  readonly inUserNamespace: boolean;
  /** Why processes are isolated less than they could be, for humans; empty: they are fully isolated. */
  readonly problem: string;
}

const isRoot = process.getuid?.() === 0;
const MAPPED = isRoot ? [`--map-user=${NOT_ROOT}`, `--map-group=${NOT_ROOT}`] : ['--map-current-user'];
const ROOT = { inUserNamespace: false };
const USER = { inUserNamespace: true };
const ALL = { hasView: true, hasNoNetwork: true, problem: '' };
const VIEW = {
  hasView: true,
  hasNoNetwork: false,
  problem: 'this host does not allow Cloudlet to create network namespaces',
};
const NET = {
  hasView: false,
  hasNoNetwork: true,
  problem:
    'this host does not allow Cloudlet to create mount namespaces: ' +
    'run Cloudlet as root with CAP_SYS_ADMIN and CAP_SYS_CHROOT, or on a host where every user may create namespaces',
};
const NONE: Isolation = { ...NET, ...ROOT, hasNoNetwork: false };
const ISOLATIONS: readonly Isolation[] = [
  { ...ALL, ...ROOT },
  { ...VIEW, ...ROOT },
  { ...ALL, ...USER },
  { ...VIEW, ...USER },
  { ...NET, ...ROOT },
  { ...NET, ...USER },
];

/** Command prefix that creates the namespaces; empty: none. */
export function namespaceCommand(isolation: Isolation, network: 'none' | 'host'): string[] {
  const { hasView, hasNoNetwork, inUserNamespace } = isolation;
  const hasNet = network === 'none' && hasNoNetwork;
  if (!hasView && !hasNet && !(inUserNamespace && isRoot)) return [];
  return [
    hostProgram('unshare'),
    ...(inUserNamespace ? ['--user', ...MAPPED, '--keep-caps'] : []),
    // Slave: unmounting a disk on the host is not blocked by processes.
    ...(hasView ? ['--mount', '--propagation', 'slave', '--pid'] : []),
    ...(hasNet ? ['--net'] : []),
    '--',
  ];
}

/** The user id that a process with its own user sees, if it runs in namespaces. */
export function seenUser({ inUserNamespace }: Isolation): number {
  return isRoot && inUserNamespace ? NOT_ROOT : (process.getuid?.() ?? 0);
}

/** Cached results: probing a host takes a dozen processes. */
const found = new Map<boolean, Promise<Isolation>>();

/** The best available isolation. `needsUsers`: for programs that change their user. Never rejects. */
export function findIsolation(needsUsers: boolean): Promise<Isolation> {
  const known = found.get(needsUsers) ?? tryAll(needsUsers);
  found.set(needsUsers, known);
  return known;
}

async function tryAll(needsUsers: boolean): Promise<Isolation> {
  const candidates = needsUsers ? ISOLATIONS.filter((isolation) => !isolation.inUserNamespace) : ISOLATIONS;
  // A user namespace removes root's powers over the host from a process that must run as root.
  const ordered = isRoot && !needsUsers ? candidates.toSorted(byUserNamespace) : candidates;
  for (const isolation of ordered) if (await works(isolation)) return isolation;
  return NONE;
}

function byUserNamespace(a: Isolation, b: Isolation): number {
  return Number(b.inUserNamespace) - Number(a.inUserNamespace);
}

async function works(isolation: Isolation): Promise<boolean> {
  const view = { folder: HARMLESS_FOLDER, readOnly: [], temporaryMb: 1, uid: seenUser(isolation) };
  try {
    const [program = '', ...words] = namespaceCommand(isolation, 'none');
    const enter = `exec ${hostProgram('unshare')} --root=. --wd=${AT} -- ${setprivProgram()} --no-new-privs true`;
    const script = isolation.hasView ? `(set -e\n${viewScript(view)}\n${enter}) & wait $!` : 'true';
    const options = { timeout: patienceMs(ASK_MS), env: { PATH: hostPath() } };
    await run(program, [...words, '/bin/sh', '-c', script], options);
    return true;
  } catch {
    return false;
  }
}
