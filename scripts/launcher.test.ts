import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, test } from 'node:test';

const ROOT = dirname(import.meta.dirname);
const PARENT = mkdtempSync(join(tmpdir(), 'launcher-'));

after(() => rmSync(PARENT, { recursive: true }));

describe('bin/cloudlet', () => {
  const installation = join(PARENT, 'installation with spaces');
  const launcher = join(installation, 'bin/cloudlet');
  mkdirSync(join(installation, 'bin'), { recursive: true });
  mkdirSync(join(installation, 'build/server/current'), { recursive: true });
  copyFileSync(join(ROOT, 'bin/cloudlet'), launcher);
  const main = `
    const [, , how] = process.argv;
    if (how === 'wait') { process.on('SIGTERM', () => process.exit(42)); setInterval(() => {}, 1000); }
    else process.exitCode = 7;
    console.log(JSON.stringify([process.argv.slice(2), process.env.UV_THREADPOOL_SIZE, process.cwd()]));
  `;
  writeFileSync(join(installation, 'build/server/current/main.js'), main);

  test('says in one line when set-up has not run', () => {
    const { status, stderr } = spawnSync(launcher, ['start'], { encoding: 'utf8' });
    assert.equal(status, 1);
    assert.match(stderr, /^cloudlet: not set up yet; run `npm start` [^\n]*\n$/);
  });

  test('is executable, keeps arguments, directory and exit code, from anywhere and through links', () => {
    assert.ok(statSync(join(ROOT, 'bin/cloudlet')).mode & 0o100);
    mkdirSync(join(installation, 'node_modules/.bin'), { recursive: true });
    symlinkSync(process.execPath, join(installation, 'node_modules/.bin/node'));
    symlinkSync(launcher, join(PARENT, 'absolute link'));
    mkdirSync(join(PARENT, 'elsewhere'));
    symlinkSync('../absolute link', join(PARENT, 'elsewhere/cloudlet'));
    const calls: [string, string][] = [
      [launcher, '/'],
      ['./installation with spaces/bin/cloudlet', PARENT],
      [join(PARENT, 'elsewhere/cloudlet'), '/'],
      ['./cloudlet', join(PARENT, 'elsewhere')],
    ];
    for (const [program, cwd] of calls) {
      const env = { PATH: process.env.PATH };
      const { status, stdout } = spawnSync(program, ['admin', 'a b', '*'], { encoding: 'utf8', cwd, env });
      assert.deepEqual(JSON.parse(stdout), [['admin', 'a b', '*'], '16', cwd], program);
      assert.equal(status, 7);
    }
    const env = { PATH: process.env.PATH, UV_THREADPOOL_SIZE: '5' };
    const { stdout } = spawnSync(launcher, [], { encoding: 'utf8', cwd: '/', env });
    assert.deepEqual(JSON.parse(stdout), [[], '5', '/']);
  });

  test('a signal reaches the server, whose exit code comes back', async () => {
    const child = spawn(launcher, ['wait'], { stdio: ['ignore', 'pipe', 'inherit'] });
    await new Promise((resolve) => child.stdout.once('data', resolve));
    child.kill('SIGTERM');
    const [code, signal] = await new Promise<[number | null, string | null]>((resolve) => {
      child.once('exit', (...end) => resolve(end));
    });
    assert.deepEqual([code, signal], [42, null]);
  });

  test('where the Node of the package lacks a library, the one that installed it says so', () => {
    const installed = join(PARENT, 'package');
    const bin = join(PARENT, 'no-apt-get');
    for (const folder of ['bin', 'scripts', 'node_modules/.bin'])
      mkdirSync(join(installed, folder), { recursive: true });
    copyFileSync(join(ROOT, 'bin/cloudlet'), join(installed, 'bin/cloudlet'));
    for (const name of globSync('*.{js,json}', { cwd: join(ROOT, 'scripts') }))
      copyFileSync(join(ROOT, 'scripts', name), join(installed, 'scripts', name));
    writeFileSync(join(installed, 'package.json'), '{ "type": "module" }');
    const node = join(installed, 'node_modules/.bin/node');
    const loader = `${node}: error while loading shared libraries: libatomic.so.1: cannot open shared object file`;
    writeFileSync(node, `#!/bin/sh\necho '${loader}' >&2\nexit 127\n`, { mode: 0o755 });
    mkdirSync(bin);
    symlinkSync(process.execPath, join(bin, 'node'));
    symlinkSync('/usr/bin/dirname', join(bin, 'dirname'));
    const words = [join(installed, 'bin/cloudlet'), 'start'];
    const { status, stderr } = spawnSync('/bin/sh', words, { env: { PATH: bin }, encoding: 'utf8' });
    const fix = 'the library libatomic.so.1 is missing. On Debian: sudo apt-get install libatomic1';
    assert.equal(stderr, `set-up: the Node of this package does not run on this machine: ${fix}\n`);
    assert.equal(status, 1);
  });
});
