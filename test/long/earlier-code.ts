/** Cloudlet at earlier commits of this repository, each in its own folder. */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Published versions, by commit. Each new publication must be added here. */
export const LANDINGS = [
  'bb00530a',
  '982706db',
  'd7bdb8c0',
  '8ef8afef',
  '99928534',
  'fdaf882c',
  'f6d524d6',
  'c31ed40a',
  'bdd1b7d7',
  'bb4841cf',
  'ef9a815f',
  'b24e4756',
] as const;

/** The previous version: its nodes continue beside those of this one, on the newest schema. */
export const VERSION_BEFORE = 'b24e4756';

/** Why that commit is not in this clone; false: it is. For the `skip` of tests. */
export function notInHistory(commit: string): string | false {
  const { status } = spawnSync('git', ['cat-file', '-e', `${commit}^{commit}`], {
    cwd: ROOT,
    stdio: 'ignore',
  });
  return status === 0 ? false : `the git history of this clone does not reach back to ${commit}`;
}

/** Settings of every test cloud that this version refuses, because it does not know them. */
export function withoutUnknownSettings(commit: string): Readonly<Record<string, string | undefined>> {
  const name = 'CLOUDLET_REGISTRATION';
  const { status } = spawnSync('git', ['grep', '-q', name, commit], { cwd: ROOT, stdio: 'ignore' });
  return status === 0 ? {} : { [name]: undefined };
}

/** The folder with its code and packages, for any user; `remove` it afterwards. */
export function earlierCode(commit: string): { readonly folder: string; readonly remove: () => void } {
  const folder = mkdtempSync(join(tmpdir(), `cloudlet-${commit}-`));
  chmodSync(folder, 0o755);
  const archive = execFileSync('git', ['archive', commit], { cwd: ROOT, maxBuffer: 2 ** 30 });
  execFileSync('tar', ['x', '-C', folder], { input: archive });
  if (hasItsPackages(folder)) symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  else execFileSync('npm', ['ci', '--omit=dev', '--no-audit', '--no-fund'], { cwd: folder, stdio: 'ignore' });
  linkBuild(folder);
  if (existsSync(join(folder, 'scripts/build-server.ts'))) buildServer(folder);
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/**
 * Links the downloads of the set-up that all versions share: programs of databases, the guest. Not our
 * server.
 */
function linkBuild(folder: string): void {
  mkdirSync(join(folder, 'build'));
  for (const name of readdirSync(join(ROOT, 'build')))
    if (name !== 'server') symlinkSync(join(ROOT, 'build', name), join(folder, 'build', name));
}

/** Versions since decision 0040 run a build, which their user may not be able to create there. */
function buildServer(folder: string): void {
  const node = join(folder, 'node_modules/.bin/node');
  execFileSync(node, [join(folder, 'scripts/builds.js'), 'server'], { cwd: folder, stdio: 'pipe' });
}

/** Whether the packages of this version have exactly the required versions. */
function hasItsPackages(folder: string): boolean {
  const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return Object.entries(dependencies).every(([name, version]) => {
    const path = join(ROOT, 'node_modules', name, 'package.json');
    return existsSync(path) && JSON.parse(readFileSync(path, 'utf8')).version === version;
  });
}
