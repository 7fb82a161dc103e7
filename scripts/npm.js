/**
 * npm as called by the set-up, and the meaning of its errors. Plain JavaScript, because an old Node runs it.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './outside-programs.js';

const AS_PINNED = join(fileURLToPath(new URL('.', import.meta.url)), 'pinned-version.cjs');

/** Messages of npm, and their meaning. The first match is printed. */
const NPM_FAILURES = [
  {
    pattern: /\b(ENOTFOUND|EAI_AGAIN|ECONN(REFUSED|RESET)|ETIMEDOUT|E(NET|HOST)UNREACH|ERR_SOCKET_TIMEOUT)\b/,
    message:
      'the package registry cannot be reached; connect to the network (or set its proxy) and run this again',
  },
  { pattern: /\bENOSPC\b/, message: 'the disk is full; free about 700 MB and run this again' },
  {
    pattern: /\b(EACCES|EPERM|EROFS)\b/,
    message: "no permission to write node_modules (or npm's cache); run this as the owner of that directory",
  },
  {
    pattern: /\bEINTEGRITY\b/,
    message: 'a downloaded package does not match package-lock.json; run `npm cache verify` and try again',
  },
  {
    pattern: /\bETARGET\b|\bE404\b/,
    message: 'the registry does not have a package listed in package-lock.json',
  },
  {
    pattern: /\bEUSAGE\b/,
    message: 'package.json and package-lock.json disagree; run `npm install` and commit the lock file',
  },
];

const NPM_LOG = 'A complete log of this run can be found in: ';
/** Number of npm's lines that are shown if none of them is known. */
const CAUSE_LINES = 15;

/** Debian 12 has Node 18; packages that we need require this version. */
const OLDEST = [20, 19];

/** The environment in which npm installs packages for the pinned Node (`v26.10.0`). */
function forPinned(version) {
  const [major, minor] = process.versions.node.split('.').map(Number);
  const isOld = major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]);
  if (version === undefined || !isOld) return {};
  return { NODE_OPTIONS: `--require ${JSON.stringify(AS_PINNED)}`, CLOUDLET_PINNED_NODE: version };
}

/**
 * `npm ci`, without install scripts: all packages in the lock file, or none. `pinned`: version of the Node
 * that the packages are for. Returns undefined, or the reason of the failure, for humans.
 */
export function cleanInstall(more, pinned) {
  return callNpm(['ci', ...more], pinned);
}

/** Like cleanInstall(), but existing files stay in place: a server may run from them. */
export function addPackages(more, pinned) {
  return callNpm(['install', '--no-save', ...more], pinned);
}

function callNpm(words, pinned) {
  // npm's warnings concern the host's Node, which only starts this script; errors are still shown.
  const options = [
    '--ignore-scripts',
    '--loglevel=error',
    '--no-audit',
    '--no-fund',
    '--no-progress',
    '--prefer-offline',
    '--fetch-retry-mintimeout=2000',
    '--fetch-retry-maxtimeout=10000',
  ];
  const result = run('npm', [...words, ...options], forPinned(pinned));
  return result.error || result.status !== 0 ? explainNpm(result, words[0]) : undefined;
}

/** The reason of npm's failure: on one line if it is known, otherwise npm's output. */
function explainNpm(result, verb) {
  if (result.error && result.error.code === 'ENOENT')
    return 'npm was not found; install Node.js 18 or newer with npm';
  const output = `${result.stderr || ''}\n${result.stdout || ''}`;
  const known = NPM_FAILURES.find(({ pattern }) => pattern.test(output));
  const detail = output.match(/(?:Missing|Invalid): .*/);
  if (known) return detail ? `${known.message} (${detail[0]})` : known.message;
  const said = output
    .split('\n')
    .filter((line) => /^npm (error|ERR!) \S/.test(line))
    .map((line) => line.replace(/^npm (error|ERR!) /, ''));
  const log = said.find((line) => line.startsWith(NPM_LOG));
  const cause = said.filter((line) => line !== log).slice(0, CAUSE_LINES);
  return [
    `npm ${verb} exited with ${result.signal || result.status}${cause.length > 0 ? ':' : ''}`,
    ...cause.map((line) => `  ${line}`),
    ...(log ? [`npm's log: ${log.slice(NPM_LOG.length)}`] : []),
  ].join('\n');
}
