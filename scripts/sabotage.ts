/**
 * `npm run test:sabotage`: shows that the fault tests can fail. Each sabotage of sabotages.ts is applied to
 * a copy of the repository, and its test must go red there, for the reason it is meant to. One at a time.
 *
 *   npm run test:sabotage -- --only <part of a name>
 *
 * Ends with 1 if a test stayed green, was skipped, or failed for another reason.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type Edit, SABOTAGES, type Sabotage } from './sabotages.ts';

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const DEADLINE_MS = 90_000;
/** Time limit of a test whose event a sabotage may prevent. */
const GIVE_UP_MS = 12_000;

interface Verdict {
  readonly name: string;
  readonly test: string;
  readonly red: boolean;
  /** The line of the failure that shows that it is the right one, or why there is none. */
  readonly because: string;
}

/** Files known to git and new ones, as they are now; node_modules is shared. */
function copyRepository(target: string): void {
  const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
  const files = execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).split('\0');
  for (const file of files) {
    if (file === '' || !existsSync(join(ROOT, file))) continue;
    cpSync(join(ROOT, file), join(target, file));
  }
  symlinkSync(join(ROOT, 'node_modules'), join(target, 'node_modules'));
}

/** Throws unless the text to be replaced is there exactly once. */
function apply(root: string, { file, find, replace }: Edit): void {
  const path = join(root, file);
  const parts = readFileSync(path, 'utf8').split(find);
  if (parts.length !== 2)
    throw new Error(`${file} has ${parts.length - 1} matches instead of one: ${find.trim()}`);
  writeFileSync(path, parts.join(replace));
}

/** Ends leftover processes of a stopped test: only those whose command names `directory`. */
function endProcessesOf(directory: string): void {
  for (const path of globSync('/proc/[0-9]*/cmdline')) {
    try {
      if (readFileSync(path, 'utf8').includes(directory)) process.kill(Number(path.split('/')[2]), 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
  }
}

/** Unmounts the disks that such a test left mounted, and frees their loop devices. */
function unmountDisksOf(directory: string): void {
  if (!existsSync('/proc/mounts')) return;
  for (const line of readFileSync('/proc/mounts', 'utf8').split('\n')) {
    const [device, mountPoint] = line.split(' ');
    if (device === undefined || !mountPoint?.startsWith(`${directory}/`)) continue;
    spawnSync('umount', [mountPoint]);
    spawnSync('losetup', ['--detach', device]);
  }
}

/** Output of the test, and its exit code; null when it had to be stopped. */
async function runTest(home: string, sabotage: Sabotage): Promise<{ code: number | null; output: string }> {
  const root = join(home, 'cloudlet');
  const pattern = sabotage.pattern === undefined ? [] : [`--test-name-pattern=${sabotage.pattern}`];
  const file = `test/faults/${sabotage.test}.test.ts`;
  const child = spawn(
    join(root, 'node_modules/.bin/node'),
    ['--test', '--test-reporter=tap', ...pattern, file],
    {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env.PATH,
        TMPDIR: join(home, 'tmp'),
        FAULTS: 'fast',
        FAULTS_GIVE_UP_MS: String(GIVE_UP_MS),
        ...(sabotage.rounds === undefined ? {} : { FAULTS_ROUNDS: String(sabotage.rounds) }),
      },
    },
  );
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  // Its clouds hold the pipes open, so they must end too before it counts as closed.
  const deadline = setTimeout(() => {
    child.kill('SIGKILL');
    endProcessesOf(home);
  }, DEADLINE_MS);
  const [code] = await once(child, 'close');
  clearTimeout(deadline);
  return { code, output };
}

function judge({ sees }: Sabotage, { code, output }: { code: number | null; output: string }) {
  const lines = output.split('\n').map((line) => line.trim());
  if (code === 0) {
    const skipped = lines.find((line) => line.includes('# SKIP'));
    return { red: false, because: skipped === undefined ? 'it passed' : `skipped: ${skipped}` };
  }
  const telling = lines.find((line) => sees.test(line) && !/^(#|ok |not ok )/.test(line));
  if (telling !== undefined) return { red: true, because: telling };
  if (code === null) return { red: false, because: `stopped after ${DEADLINE_MS / 1000} s` };
  const error = lines.find((line) => line.startsWith('error:')) ?? 'no error line';
  return { red: false, because: `failed for another reason: ${error}` };
}

async function attempt(sabotage: Sabotage): Promise<Verdict> {
  const { name, test } = sabotage;
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'cloudlet-sabotage-')));
  try {
    mkdirSync(join(home, 'tmp'));
    copyRepository(join(home, 'cloudlet'));
    for (const edit of sabotage.edits) apply(join(home, 'cloudlet'), edit);
    const ran = await runTest(home, sabotage);
    if (process.env.SABOTAGE_OUTPUT !== undefined) writeFileSync(process.env.SABOTAGE_OUTPUT, ran.output);
    return { name, test, ...judge(sabotage, ran) };
  } finally {
    endProcessesOf(home);
    unmountDisksOf(home);
    rmSync(home, { recursive: true, force: true });
  }
}

const { only } = parseArgs({ options: { only: { type: 'string' } } }).values;
const chosen = SABOTAGES.filter(({ name }) => only === undefined || name.includes(only));
if (chosen.length === 0) {
  const names = SABOTAGES.map(({ name }) => `  ${name}`).join('\n');
  throw new Error(`No sabotage name contains ${only}. Available sabotages:\n${names}`);
}
const width = Math.max(...chosen.map(({ name }) => name.length));
console.log(`${'sabotage'.padEnd(width)} | ${'test'.padEnd(16)} | went red`);
let green = 0;
for (const sabotage of chosen) {
  const { name, test, red, because } = await attempt(sabotage);
  if (!red) green++;
  const reason = because.slice(0, 160);
  console.log(`${name.padEnd(width)} | ${test.padEnd(16)} | ${red ? 'yes' : 'NO'}: ${reason}`);
}
console.log(`${chosen.length - green} of ${chosen.length} went red`);
process.exitCode = green === 0 ? 0 : 1;
