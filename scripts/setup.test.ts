import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, describe, test } from 'node:test';
import { noOtherReaders } from '../server/testing/own-ground.ts';
import { makeClone, OUTSIDE, onlyNpm, PARENT, UNREACHABLE } from './setup-clone.ts';

after(() => rmSync(PARENT, { recursive: true }));

/** Gives a clone a dependency that only its tests use. */
function addTestPackage(directory: string): void {
  mkdirSync(join(directory, 'only-tests'));
  const about = { name: 'only-tests', version: '1.0.0' };
  writeFileSync(join(directory, 'only-tests/package.json'), JSON.stringify(about));
  const devDependencies = { 'only-tests': 'file:only-tests' };
  const change = (file: string, alter: (json: Record<string, object>) => object) => {
    const path = join(directory, file);
    writeFileSync(path, JSON.stringify(alter(JSON.parse(readFileSync(path, 'utf8')))));
  };
  change('package.json', (manifest) => ({ ...manifest, devDependencies }));
  change('package-lock.json', ({ packages, ...lock }) => {
    const entries = packages as Record<string, object>;
    const entry = { 'node_modules/only-tests': { resolved: 'only-tests', link: true, dev: true } };
    const own = { 'only-tests': { version: '1.0.0', dev: true } };
    return { ...lock, packages: { ...entries, '': { ...entries[''], devDependencies }, ...entry, ...own } };
  });
}

const NPM_LOG = 'A complete log of this run can be found in: ';

describe('set-up', () => {
  test('installs in a fresh clone, says so in a line, and does nothing the next time', () => {
    const clone = makeClone();
    const first = clone.setUp('start');
    assert.equal(first.code, 0, first.output);
    assert.match(first.output, /^ {2}installing dependencies … done \(\d+\.\d s\)\n {2}runtime: Node \d/);
    assert.ok(existsSync(join(clone.directory, 'node_modules/.bin/node')));
    assert.deepEqual(clone.setUp('start'), { code: 0, output: '' });
  });

  test('other users, as whom databases run, may read what it installs, whatever the umask', () => {
    const clone = makeClone();
    const before = process.umask(0o077);
    try {
      assert.equal(clone.setUp('start').code, 0);
    } finally {
      process.umask(before);
    }
    assert.equal(statSync(join(clone.directory, 'node_modules')).mode & 0o077, 0o055);
  });

  test('installs again when the lock file changed, or when an install was cut short', () => {
    const clone = makeClone();
    clone.setUp('start');
    const lockPath = join(clone.directory, 'package-lock.json');
    writeFileSync(lockPath, `${readFileSync(lockPath, 'utf8')}\n`);
    // The same packages, written differently: npm's own record shows that there is nothing to install.
    assert.doesNotMatch(clone.setUp('start').output, /installing/);
    rmSync(join(clone.directory, 'node_modules/.bin'), { recursive: true });
    rmSync(join(clone.directory, 'node_modules/.cloudlet-setup'));
    assert.match(clone.setUp('start').output, /installing dependencies … done/);
  });

  test('what only tests use comes with the first test, and nothing else is installed anew', () => {
    const clone = makeClone();
    addTestPackage(clone.directory);
    const inModules = (...path: string[]) => join(clone.directory, 'node_modules', ...path);
    assert.equal(clone.setUp('start').code, 0);
    assert.ok(!existsSync(inModules('only-tests')));
    writeFileSync(inModules('.in-use'), '');
    const tested = clone.setUp('test', { env: { PATH: onlyNpm(clone.directory) } });
    assert.match(tested.output, /installing dependencies … done/);
    for (const name of ['only-tests', '.in-use']) assert.ok(existsSync(inModules(name)), name);
    assert.deepEqual(clone.setUp('start'), { code: 0, output: '' });
  });

  test('no network: one line, exit code 1', () => {
    const integrity = `sha512-${'A'.repeat(86)}==`;
    const missing = { 'node_modules/left-behind': { version: '1.0.0', integrity } };
    const { code, output } = makeClone(missing, { 'left-behind': '1.0.0' }).setUp('start', {
      env: UNREACHABLE,
    });
    assert.equal(code, 1);
    assert.match(
      output,
      /^ {2}installing dependencies … failed\nset-up: the package registry cannot be reached[^\n]*\n$/,
    );
  });

  test('no permission to write: one line, exit code 1', (t) => {
    if (noOtherReaders) return t.skip(noOtherReaders);
    const clone = makeClone();
    chmodSync(PARENT, 0o755);
    const cache = mkdtempSync(join(tmpdir(), 'setup-cache-'));
    chmodSync(cache, 0o777);
    const env = { npm_config_cache: cache, HOME: cache };
    const { code, output } = clone.setUp('start', { uid: 65534, env });
    rmSync(cache, { recursive: true });
    assert.equal(code, 1, output);
    assert.match(output, /\nset-up: no permission to write [^\n]*\n$/);
  });

  test('a lock file that disagrees, and an npm that is not there: one line each', () => {
    const clone = makeClone({}, { unlocked: 'file:unlocked' });
    mkdirSync(join(clone.directory, 'unlocked'));
    const manifest = JSON.stringify({ name: 'unlocked', version: '1.0.0' });
    writeFileSync(join(clone.directory, 'unlocked/package.json'), manifest);
    const disagree = clone.setUp('start');
    assert.equal(disagree.code, 1);
    assert.match(disagree.output, /set-up: package.json and package-lock.json disagree[^\n]*\n$/);
    const noNpm = makeClone().setUp('start', { env: { PATH: '/nonexistent' } });
    assert.equal(noNpm.code, 1);
    assert.match(noNpm.output, /set-up: npm was not found; install Node.js 18 or newer with npm\n$/);
  });

  test('a pinned Node that was left out, or does not run, is named with what to do', () => {
    const clone = makeClone();
    clone.setUp('start');
    const node = join(clone.directory, 'node_modules/.bin/node');
    rmSync(node);
    symlinkSync('/bin/false', node);
    assert.match(clone.setUp('start').output, /^set-up: node-\S+ does not run on this machine/);
    rmSync(node);
    writeFileSync(node, '#!/bin/sh\necho v1.2.3\n', { mode: 0o755 });
    assert.match(clone.setUp('start').output, /^set-up: \S+ is v1\.2\.3, expected v\d+/);
    rmSync(node);
    rmSync(join(clone.directory, 'runtime/bin/node'));
    assert.match(
      clone.setUp('start').output,
      /^set-up: node-\S+ .* was not installed; run `npm ci --include=optional`/,
    );
  });

  test('an npm that leaves the link to the pinned Node out, as version 9 does, is of use', () => {
    const clone = makeClone();
    const bin = onlyNpm(clone.directory);
    const npm = realpathSync(join(bin, 'npm'));
    rmSync(join(bin, 'npm'));
    const script = `#!/bin/sh\n'${npm}' "$@" && PATH=/usr/bin:/bin rm -f node_modules/.bin/node\n`;
    writeFileSync(join(bin, 'npm'), script, { mode: 0o755 });
    const { code, output } = clone.setUp('start', { env: { PATH: bin } });
    assert.equal(code, 0, output);
    const { stdout } = spawnSync(join(clone.directory, 'node_modules/.bin/node'), ['-v'], {
      encoding: 'utf8',
    });
    assert.equal(stdout, `${process.version}\n`);
    assert.deepEqual(clone.setUp('start'), { code: 0, output: '' });
  });

  test('tests go on without the programs they need, and it is said how to get them', (t) => {
    if (noOtherReaders) return t.skip(noOtherReaders);
    const clone = makeClone();
    clone.setUp('start');
    chmodSync(PARENT, 0o755);
    const bare = join(clone.directory, 'bare');
    mkdirSync(bare);
    const { code, output } = clone.setUp('test', { uid: 65534, env: { PATH: bare } });
    assert.equal(code, 0, output);
    assert.match(
      output,
      /^ {2}missing: .*chromium \(browser tests\), .*On Debian: sudo apt-get install .*chromium /,
    );
  });

  test('packages with native code are not compiled: no python3, make or compiler is needed', () => {
    const resolved = 'file:native-1.0.0.tgz';
    const native = { version: '1.0.0', resolved, hasInstallScript: true };
    const clone = makeClone({ 'node_modules/native': native }, { native: resolved });
    const folder = join(clone.directory, 'native');
    mkdirSync(folder);
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'native', version: '1.0.0' }));
    // Without its own script npm runs node-gyp for it, as it does for better-sqlite3.
    writeFileSync(join(folder, 'binding.gyp'), '{ "targets": [{ "target_name": "native" }] }');
    spawnSync('npm', ['pack', './native'], { cwd: clone.directory, env: OUTSIDE });
    // Newer npms run only scripts that were approved, unless told this; older ones do not know it.
    const env = { PATH: onlyNpm(clone.directory), npm_config_dangerously_allow_all_scripts: 'true' };
    const { code, output } = clone.setUp('start', { env });
    assert.equal(code, 0, output);
    assert.ok(existsSync(join(clone.directory, 'node_modules/native/binding.gyp')));
  });

  test('of better-sqlite3 only what this host reads stays: its sources and other binaries are 25 MB', () => {
    const resolved = 'file:better-sqlite3-1.0.0.tgz';
    const entry = { version: '1.0.0', resolved };
    const clone = makeClone({ 'node_modules/better-sqlite3': entry }, { 'better-sqlite3': resolved });
    const folder = join(clone.directory, 'better-sqlite3');
    const own = `${process.platform}-${process.arch}.node`;
    const files = [`prebuilds/${own}`, 'prebuilds/plan9-mips.node', 'deps/sqlite3.c', 'lib/index.js'];
    for (const file of files) {
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      writeFileSync(join(folder, file), '');
    }
    const manifest = { name: 'better-sqlite3', version: '1.0.0' };
    writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
    spawnSync('npm', ['pack', './better-sqlite3'], { cwd: clone.directory, env: OUTSIDE });
    const { code, output } = clone.setUp('start');
    assert.equal(code, 0, output);
    const installed = join(clone.directory, 'node_modules/better-sqlite3');
    const left = files.filter((file) => existsSync(join(installed, file)));
    assert.deepEqual(left, [`prebuilds/${own}`, 'lib/index.js']);
  });

  test('npm fails in a way that is not known: what it said, and where its log is', () => {
    const clone = makeClone();
    const bin = onlyNpm(clone.directory);
    rmSync(join(bin, 'npm'));
    const said = [
      'npm error code 1',
      'npm error path /x',
      'npm error odd thing',
      `npm error ${NPM_LOG}/y.log`,
    ];
    const script = `#!/bin/sh\nprintf '%s\\n' ${said.map((line) => `'${line}'`).join(' ')} >&2\nexit 3\n`;
    writeFileSync(join(bin, 'npm'), script, { mode: 0o755 });
    const { code, output } = clone.setUp('start', { env: { PATH: bin } });
    assert.equal(code, 1);
    const shown = ['npm ci exited with 3:', '  code 1', '  path /x', '  odd thing', "npm's log: /y.log"];
    assert.ok(output.endsWith(`\nset-up: ${shown.join('\n')}\n`), output);
  });

  test('a library that the pinned Node lacks is installed, or named with its package', () => {
    const clone = makeClone();
    clone.setUp('start');
    const node = join(clone.directory, 'node_modules/.bin/node');
    const library = join(clone.directory, 'libatomic.so.1');
    rmSync(node);
    const loader = `${node}: error while loading shared libraries: libatomic.so.1: cannot open shared object file`;
    const script = `[ -e '${library}' ] && exec '${process.execPath}' "$@"\necho '${loader}' >&2\nexit 127\n`;
    writeFileSync(node, `#!/bin/sh\n${script}`, { mode: 0o755 });
    const bin = onlyNpm(clone.directory);
    const without = clone.setUp('start', { env: { PATH: bin } });
    assert.equal(without.code, 1);
    const fix = 'the library libatomic.so.1 is missing. On Debian: sudo apt-get install libatomic1';
    assert.match(without.output, /^set-up: node-\S+ does not run on this machine: /);
    assert.ok(without.output.endsWith(`${fix}\n`), without.output);
    if (process.getuid?.() !== 0 || !existsSync('/etc/debian_version')) return;
    // Instead of Debian's: tests must not need the mirror.
    const aptGet = `#!/bin/sh\ncase "$*" in install*libatomic1*) : > '${library}' ;; esac\n`;
    writeFileSync(join(bin, 'apt-get'), aptGet, { mode: 0o755 });
    const { code, output } = clone.setUp('start', { env: { PATH: bin } });
    assert.equal(code, 0, output);
    assert.match(output, /^ {2}installing Debian package libatomic1 … done \(\d/);
  });

  test('an installation of packages that was ended in the middle is set right first', (t) => {
    if (process.getuid?.() !== 0 || !existsSync('/etc/debian_version')) return t.skip('needs root on Debian');
    const clone = makeClone();
    const bin = onlyNpm(clone.directory);
    const mark = join(clone.directory, 'set-right');
    // Instead of Debian's packages, which tests must not change.
    const problem =
      "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem.";
    const aptGet = `case "$*" in install*) [ -e '${mark}' ] || { echo "${problem}" >&2; exit 100; } ;; esac`;
    writeFileSync(join(bin, 'apt-get'), `#!/bin/sh\n${aptGet}\n`, { mode: 0o755 });
    writeFileSync(join(bin, 'dpkg'), `#!/bin/sh\n[ "$*" = '--configure -a' ] && : > '${mark}'\n`, {
      mode: 0o755,
    });
    const { code, output } = clone.setUp('start', { env: { PATH: bin } });
    assert.equal(code, 0, output);
    assert.match(output, /^ {2}installing Debian packages [^…]+ … done \(\d/m);
  });

  test('an unknown purpose is refused', () => {
    assert.deepEqual(makeClone().setUp('nothing').code, 1);
  });
});

describe('the preparation beside a server', () => {
  const prepare = (directory: string, ...words: string[]) => {
    const env = { ...OUTSIDE, PATH: onlyNpm(directory), ...UNREACHABLE };
    return spawn(process.execPath, [join(directory, 'scripts/prepare.js'), ...words], {
      env,
      stdio: ['pipe', 'pipe', 'inherit'],
    });
  };

  test('says what this host can never have, and ends', async () => {
    const { directory } = makeClone();
    mkdirSync(join(directory, 'guest'));
    const left = join(directory, 'build/programs/work-killed');
    mkdirSync(left, { recursive: true });
    const child = prepare(directory, 'has-postgresql');
    const [said, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    assert.equal(code, 0, said);
    for (const title of ['guest image', 'PostgreSQL', 'MariaDB'])
      assert.match(said, new RegExp(`^ {2}${title} is not available: .`, 'm'));
    assert.doesNotMatch(said, /Trying again/);
    assert.deepEqual(readdirSync(join(directory, 'build/preparing')), []);
    assert.equal(existsSync(left), false, 'what a killed one left is removed');
  });

  test('tries again what may come later, until its server ends', async () => {
    const { directory } = makeClone();
    mkdirSync(join(directory, 'guest'));
    const child = prepare(directory);
    let said = '';
    for await (const piece of child.stdout.setEncoding('utf8')) {
      said += piece;
      if (/Trying again in 30 s/.test(said)) child.stdin.end();
    }
    assert.match(said, /PostgreSQL is not available[\s\S]*Trying again in 30 s\.\n$/);
    assert.equal(child.exitCode ?? (await once(child, 'exit'))[0], 0);
  });
});
