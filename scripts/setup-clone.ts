/** Small clones, for the tests of the set-up. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';

const ROOT = dirname(import.meta.dirname);
export const PARENT = mkdtempSync(join(tmpdir(), 'setup-'));
const NODE_PACKAGE = `node-${process.platform}-${process.arch}`;
export const UNREACHABLE = { npm_config_registry: 'http://127.0.0.1:9/', npm_config_fetch_retries: '0' };

const SCRIPTS = readdirSync(join(ROOT, 'scripts')).filter((name) => /\.js(?:on)?$/.test(name));
/** Without any user's npm configuration. */
const HOME = join(PARENT, 'home');
mkdirSync(HOME);

/** The environment of a person who just cloned this, without npm's settings for its child processes. */
export const OUTSIDE = {
  ...Object.fromEntries(Object.entries({ ...process.env, HOME }).filter(([name]) => !/^npm_/i.test(name))),
  // npm 9 copies folders, and then reports other versions than our lock file.
  npm_config_install_links: 'false',
};

interface LockEntry {
  readonly resolved?: string;
  readonly link?: boolean;
  readonly version?: string;
  readonly integrity?: string;
  readonly optional?: boolean;
  readonly bin?: Readonly<Record<string, string>>;
  readonly os?: readonly string[];
}

export interface Clone {
  readonly directory: string;
  /** Its environment. */
  readonly env: NodeJS.ProcessEnv;
  /** Runs the set-up script like npm, with its own empty cache. */
  setUp(
    purpose: string,
    options?: { env?: Record<string, string>; uid?: number },
  ): { code: number; output: string };
}

let clones = 0;

/**
 * A repository whose only dependency is a "Node" package kept inside it, so that real npm installs it
 * without a network.
 */
export function makeClone(
  extra: Readonly<Record<string, LockEntry>> = {},
  dependencies: Record<string, string> = {},
): Clone {
  const directory = join(PARENT, `clone-${clones++}`);
  const runtime = join(directory, 'runtime');
  mkdirSync(join(directory, 'scripts'), { recursive: true });
  mkdirSync(join(runtime, 'bin'), { recursive: true });
  for (const name of SCRIPTS) copyFileSync(join(ROOT, 'scripts', name), join(directory, 'scripts', name));
  const bin = { node: 'bin/node' };
  const version = process.versions.node;
  writeFileSync(join(runtime, 'package.json'), JSON.stringify({ name: NODE_PACKAGE, version, bin }));
  writeFileSync(join(runtime, 'bin/node'), `#!/bin/sh\nexec '${process.execPath}' "$@"\n`);
  chmodSync(join(runtime, 'bin/node'), 0o755);
  const manifest = {
    name: 'clone',
    version: '1.0.0',
    type: 'module',
    dependencies: { [NODE_PACKAGE]: 'file:runtime', ...dependencies },
  };
  const isLocked = ([name]: [string, string]) => name === NODE_PACKAGE || `node_modules/${name}` in extra;
  const locked = Object.fromEntries(Object.entries(manifest.dependencies).filter(isLocked));
  const packages = {
    '': { ...manifest, dependencies: locked },
    [`node_modules/${NODE_PACKAGE}`]: { resolved: 'runtime', link: true },
    runtime: { name: NODE_PACKAGE, version, bin },
    ...extra,
  };
  const lock = { name: 'clone', version: '1.0.0', lockfileVersion: 3, requires: true, packages };
  writeFileSync(join(directory, 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(directory, 'package-lock.json'), JSON.stringify(lock));
  const ownEnv = { ...OUTSIDE, npm_config_cache: join(PARENT, `cache-${clones}`) };
  return {
    directory,
    env: ownEnv,
    setUp(purpose, { env = {}, uid } = {}) {
      const script = join(directory, 'scripts/setup.js');
      const result = spawnSync(process.execPath, [script, purpose], {
        encoding: 'utf8',
        timeout: 60_000,
        env: { ...ownEnv, ...env },
        ...(uid === undefined ? {} : { uid, gid: uid }),
      });
      return { code: result.status ?? -1, output: result.stdout + result.stderr };
    },
  };
}

/** A PATH with only npm and its requirements. */
export function onlyNpm(directory: string): string {
  const bin = join(directory, 'only-npm');
  mkdirSync(bin);
  const folders = (process.env.PATH ?? '').split(delimiter);
  const npm = folders.map((folder) => join(folder, 'npm')).find((path) => existsSync(path));
  symlinkSync(realpathSync(npm ?? assert.fail('npm is not there')), join(bin, 'npm'));
  symlinkSync(process.execPath, join(bin, 'node'));
  symlinkSync('/bin/sh', join(bin, 'sh'));
  return bin;
}
