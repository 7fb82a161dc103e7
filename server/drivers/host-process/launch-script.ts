/** The shell scripts that bring a foreign process to where it may run, and wait for it. */
import { hostPath, hostProgram } from '../../platform/host-programs.ts';
import { closeOthers, ENDED, quoted } from './ending-note.ts';
import { AT, ROOT, type View, viewScript } from './view-script.ts';

/** In the keeper's folder: which process runs, `<boot id> <line of /proc/…/stat>`. */
export const RUN = 'run';
/** In the keeper's folder: held while the process runs. */
const LOCK = 'lock';
/** Begins the line that tells that all is ready; the process's own line of /proc/…/stat follows. */
export const READY = 'ready ';
const LOCK_SECONDS = 3;
export const WITH_US = ['--pdeathsig', 'KILL', '--'] as const;

export interface Launch {
  /** Words before a command that runs in namespaces of its own; none: it stays in ours. */
  readonly apart: readonly string[];
  /** null: it sees what its user may see. */
  readonly view: View | null;
  /** Its working directory where it has no view. */
  readonly folder: string;
  /** `setpriv` and its options, up to the command. */
  readonly asUser: readonly string[];
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** As lines for Bash. */
  readonly limits: readonly string[];
  /** File of the control group that takes processes; null: none. */
  readonly groupFile: string | null;
  /** Folder of ours, for what is to be known of it when we have ended before; null: it ends with us. */
  readonly keeper: string | null;
  readonly bootId: string;
}

/**
 * For Bash, with descriptors 0, 1 and 2 of the program, 3 to us, and `others` more for the program. It
 * becomes the shell that runs keeperScript(), which it reads from descriptor 3. Descriptors 5 and 6 are then
 * the program's 0 and 2.
 */
export function shellScript({ apart, limits, keeper }: Launch, others: number): string {
  const lock = [
    `cd ${quoted(keeper ?? '')} && exec 7>${LOCK} && flock -w ${LOCK_SECONDS} 7 ||`,
    // Whoever leaves with something unread takes back what it said.
    "{ echo it runs already >&3; read -r -d '' <&3; exit; }",
    `: >${ENDED} && : >${RUN} || exit`,
  ];
  return [
    // Who began after our end would not hear of it.
    ...(keeper === null ? [`[ "$PPID" = ${process.pid} ] || exit`] : []),
    closeOthers(4 + others),
    `PATH=${quoted(hostPath())}`,
    ...(keeper === null ? [] : lock),
    ...limits,
    'exec 5<&0 6>&2 0<&3 2>&3',
    `exec ${[...apart, '/bin/sh', '-s', 'cloudlet-keeper'].map(quoted).join(' ')}`,
  ].join('\n');
}

/**
 * For the shell that waits for the program. The one process that it makes is the first of a new namespace,
 * which ends with it. Words and variables of the program stand in here, and in no list of processes. The
 * braces: nothing of a script that breaks off is run.
 */
export function keeperScript(launch: Launch): string {
  const { keeper, view } = launch;
  const inner = innerScript(launch);
  let end = 'INNER';
  while (inner.includes(end)) end += '_';
  const first = [
    ...(keeper === null ? [hostProgram('setpriv'), ...WITH_US] : []),
    // What it leaves behind is then known by its group.
    ...(view === null ? ['setsid'] : []),
    ...['/bin/sh', '-s'],
  ];
  return [
    '{',
    'unset PWD OLDPWD SHLVL _',
    `PATH=${quoted(hostPath())}`,
    'cd /',
    `${first.map(quoted).join(' ')} <<'${end}' &`,
    ...[inner, end],
    'exec </dev/null >/dev/null 2>&1 3>&- 4>&- 5<&- 6>&-',
    'wait $!',
    ...(keeper === null ? [] : [`echo "$$ $?" >${quoted(`${keeper}/${ENDED}`)}`]),
    'exit',
    '}',
    '',
  ].join('\n');
}

function innerScript(launch: Launch): string {
  const { view, folder, asUser, command, args, env, groupFile, keeper, bootId } = launch;
  const enter = view === null ? [] : [hostProgram('unshare'), `--root=${ROOT}`, `--wd=${AT}`, '--'];
  const words = [...enter, ...asUser, command, ...args].map(quoted).join(' ');
  const seen = quoted((view === null ? '' : ROOT) + command);
  return [
    '{',
    'set -e',
    `PATH=${quoted(hostPath())}`,
    // 0: whoever writes it.
    ...(groupFile === null ? [] : [`echo 0 >${quoted(groupFile)}`]),
    'read -r stat </proc/self/stat',
    ...(keeper === null ? [] : [`echo ${quoted(bootId)} "$stat" >${quoted(`${keeper}/${RUN}`)}`]),
    'umask 022',
    view === null ? `cd ${quoted(folder)}` : viewScript(view),
    `[ -x ${seen} ] || { echo ${seen} is no program here >&2; exit 1; }`,
    'umask 077',
    `echo "${READY}$stat" >&3`,
    'unset PWD OLDPWD',
    ...Object.entries(env).map(([name, value]) => `export ${name}=${quoted(value)}`),
    `exec ${words} <&5 2>&6 3>&- 5<&- 6>&- 7>&-`,
    '}',
  ].join('\n');
}
