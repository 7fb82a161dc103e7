import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { openSync } from 'node:fs';
import { describe, test } from 'node:test';
import { readableLine } from './start.ts';

const LINE = { level: 40, time: Date.UTC(2026, 10, 21, 18, 1, 38, 500), pid: 7, hostname: 'here' };
/** No terminal: no colours. */
const read = (more: object) => readableLine(`${JSON.stringify({ ...LINE, ...more })}\n`, process.stderr);

describe('a line for people', () => {
  test('has time, level, message and fields, and not what is the same in every line', () => {
    const line = read({ vm_id: 'vm-1', ports: [22, 80], why: 'two words', msg: 'closed published ports' });
    const fields = 'vm_id=vm-1 ports=[22,80] why="two words"';
    assert.equal(line, `2026-11-21 18:01:38Z warn  closed published ports ${fields}\n`);
  });

  test('has errors with their stack below', () => {
    const err = { type: 'Error', message: 'no', stack: 'Error: no\n    at here', code: 'EIO' };
    const expected =
      '2026-11-21 18:01:38Z warn  failed\n    Error: no\n        at here\n    {"code":"EIO"}\n';
    assert.equal(read({ err, msg: 'failed' }), expected);
  });

  test('cannot steer the terminal, and stays one line', () => {
    const line = read({ name: '\u001b[2J\u009b1m', msg: 'a\u202eb\nc\u007f' });
    assert.doesNotMatch(line.slice(0, -1), /[\p{Cc}\p{Cf}]/u);
    assert.match(line, /a\\u202eb\\u000ac\\u007f/);
  });
});

describe('the log', () => {
  const SCRIPT = `
    import { openLog } from ${JSON.stringify(new URL('./start.ts', import.meta.url))};
    const [logFormat, text] = process.argv.slice(1);
    const log = openLog({ logLevel: 'info', logFormat });
    log.warn({ vm_id: 'vm-1', key: 'secret' }, text);
    await new Promise((resolve) => setTimeout(resolve, 50));
    log.warn('again');`;
  const words = (format: string) => ['--input-type=module', '-e', SCRIPT, format, 'hello'];
  const logged = (format: string) =>
    spawnSync(process.execPath, words(format), { encoding: 'utf8', timeout: 30_000 });

  test('is JSON where no terminal is, or text when that is asked for', () => {
    const lines = logged('auto')
      .stderr.trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.deepEqual([lines[0].msg, lines[0].vm_id, lines[0].key], ['hello', 'vm-1', '[Redacted]']);
    assert.match(logged('text').stderr, /^\S+ \S+Z warn {2}hello vm_id=vm-1 key=\[Redacted\]\n.*again\n$/);
  });

  test('is text on a terminal, coloured unless NO_COLOR says otherwise, or JSON when asked for', {
    skip: spawnSync('script', ['--version']).status === 0 ? false : 'script (Debian: bsdutils) is missing',
  }, () => {
    const inTerminal = (format: string, env: Record<string, string>) => {
      const quoted = [process.execPath, ...words(format)].map((word) => `'${word.replaceAll("'", `'\\''`)}'`);
      const options = ['--quiet', '--flush', '--command', quoted.join(' '), '/dev/null'];
      const plain = { PATH: process.env.PATH, TERM: 'xterm', ...env };
      return spawnSync('script', options, { encoding: 'utf8', env: plain, timeout: 30_000 }).stdout;
    };
    assert.ok(inTerminal('auto', {}).includes('Z \u001b[33mwarn \u001b[39m hello '));
    assert.match(inTerminal('auto', { NO_COLOR: '1' }), /Z warn {2}hello vm_id=vm-1/);
    assert.equal(JSON.parse(inTerminal('json', {}).split('\n')[0] ?? '').msg, 'hello');
  });

  test('stops nothing when it cannot be written', { skip: process.platform !== 'linux' }, () => {
    const stdio = ['ignore', 'ignore', openSync('/dev/full', 'w')] as const;
    const { status, signal } = spawnSync(process.execPath, words('auto'), {
      stdio: [...stdio],
      timeout: 30_000,
    });
    assert.deepEqual([status, signal], [0, null]);
  });
});
