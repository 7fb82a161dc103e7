import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { test } from 'node:test';
import { curablePackage, NO_GUEST_IMAGE, notInstalled } from './installed.ts';
import PROGRAMS from './programs.json' with { type: 'json' };

const ROOT = dirname(import.meta.dirname);
/** Programs of the set-up itself; and those only asked for their version, to report missing ones. */
const OTHERS = ['npm', 'node', 'apt-get', 'apt-cache', 'dpkg-deb', 'systemctl', 'update-rc.d'];
/** A literal program, as the first argument or as the first of a list of arguments. */
const CALL =
  /\b(?:spawn|execFile|runProgram|versionOf|answerOf)(?:Sync)?\)?\(\s*(?:\.\.\.\w+\()?\[?'([\w./-]+)'/g;
const WORDS = /\[\s*'(unshare|nsenter|setpriv|prlimit|sh|bash|timeout|strace)'/g;

/** Names of programs called in the text of a file. */
function calledIn(text: string): string[] {
  return [...text.matchAll(CALL), ...text.matchAll(WORDS)].map(([, path = '']) => basename(path));
}

test('every outside program that is called is in the list', () => {
  const listed = new Set([...PROGRAMS.map(({ program }) => program), ...OTHERS]);
  const files = globSync('{server,test,bench,scripts}/**/*.{ts,js}', { cwd: ROOT });
  const found = files
    .filter((file) => /child_process|host-tool|child\.ts/.test(readFileSync(join(ROOT, file), 'utf8')))
    .flatMap((file) => calledIn(readFileSync(join(ROOT, file), 'utf8')).map((name) => ({ file, name })));
  assert.ok(found.length > 30);
  assert.deepEqual(
    found.filter(({ name }) => !listed.has(name)),
    [],
  );
});

test('the list names each program once, with a package, a purpose and a use', () => {
  const names = PROGRAMS.map(({ program }) => program);
  assert.deepEqual(names, [...new Set(names)]);
  for (const entry of PROGRAMS) {
    assert.match(entry.package, /^[a-z0-9][a-z0-9.+-]+( [a-z0-9.+-]+)*$/);
    for (const purpose of entry.for.split(' ')) assert.match(purpose, /^(start|test|all|bench|long)$/);
    assert.match(entry.use, /^\S.*\S$/);
  }
});

test('what is missing is named with its package, and must be in the list', () => {
  assert.equal(notInstalled('sh', 'bash'), false);
  const path = process.env.PATH;
  try {
    process.env.PATH = '/nowhere';
    assert.equal(notInstalled('sh', 'wrk', 'bash'), 'sh is not installed: apt-get install dash');
  } finally {
    process.env.PATH = path;
  }
  assert.throws(() => notInstalled('no-such-program'), /not in scripts\/programs\.json/);
});

test('a skip that a package would cure is told from others, where the set-up installs packages', () => {
  const isAble = process.getuid?.() === 0 && globSync('/usr/bin/apt-get').length === 1;
  const reason = 'bash is not installed: apt-get install bash';
  assert.equal(curablePackage(reason, 'all'), isAble ? 'bash' : undefined);
  assert.equal(
    curablePackage('x is not installed: apt-get install no-such-package-anywhere', 'all'),
    undefined,
  );
  if (!isAble) assert.equal(curablePackage(NO_GUEST_IMAGE, 'all'), undefined);
  assert.equal(curablePackage('needs root', 'all'), undefined);
  const zsh = notInstalled('zsh') || 'zsh is not installed: apt-get install zsh';
  assert.equal(curablePackage(zsh, 'all'), isAble ? 'zsh' : undefined);
  assert.equal(curablePackage(zsh, 'test'), undefined);
});
