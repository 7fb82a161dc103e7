/** The client in a shell: exit codes, completion, prompts and progress on a terminal. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { cannotOpenTerminal, inTerminal } from '../harness/terminal.ts';
import { eventually } from '../harness/waiting.ts';
import { CliUser, PROGRAM } from './cli-kit.ts';

let cloud: CloudProcess;
let user: CliUser & { readonly key: string };
before(async () => {
  cloud = await CloudProcess.start();
  user = await CliUser.signedIn(cloud.api);
});
after(async () => {
  user.remove();
  await cloud.stop();
});

describe('the exit code', () => {
  test('tells how a command ended', async () => {
    const api = new Client(cloud.api, user.key);
    const reader = { name: 'reader', scopes: ['storage:read'] };
    const { api_key } = (await api.call('/api/account/access-keys', { json: reader })).body;
    const as = (key: string, url = cloud.api) => ({ env: { CLOUDLET_URL: url, CLOUDLET_API_KEY: key } });
    await api.call('/api/buckets', { json: { name: 'codes' } });
    for (const name of ['fine', '../out']) await api.upload('codes', name, 'x');
    await user.ok(['ls', 's3://codes']);
    await user.fails(2, ['ls', '--no-such-option']);
    await user.fails(2, ['rm', 's3://codes/fine', '--recursive', 'too', '--json=1']);
    await user.fails(3, ['vm', 'ls'], as('clk_none'));
    await user.fails(4, ['vm', 'ls'], as(api_key));
    await user.fails(4, ['recovery', 'ls']);
    await user.fails(5, ['cat', 's3://codes/none']);
    await user.fails(5, ['ls', 's3://no-such-bucket']);
    await user.fails(6, ['rb', 's3://codes']);
    await user.fails(7, ['cp', '-r', 's3://codes/', 'here']);
    await user.fails(8, ['vm', 'ls'], as(user.key, 'http://127.0.0.1:9'));
  });

  test('is 1 when the cloud itself fails', async () => {
    const broken = createServer((_, response) => response.writeHead(500).end('{}')).listen(0, '127.0.0.1');
    await once(broken, 'listening');
    const address = broken.address();
    assert.ok(address !== null && typeof address === 'object');
    const env = { CLOUDLET_URL: `http://127.0.0.1:${address.port}`, CLOUDLET_API_KEY: 'clk_x' };
    await user.fails(1, ['vm', 'ls'], { env });
    broken.closeAllConnections();
    broken.close();
  });

  test('is 124 when time is up, and 130 at Ctrl-C', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const address = silent.address();
    assert.ok(address !== null && typeof address === 'object');
    const env = { CLOUDLET_URL: `http://127.0.0.1:${address.port}`, CLOUDLET_API_KEY: 'clk_x' };
    await user.fails(124, ['vm', 'ls', '--timeout', '1'], { env });
    const child = user.start(['vm', 'ls'], { env });
    await once(silent, 'request');
    child.kill('SIGINT');
    const [code] = await once(child, 'close');
    assert.equal(code, 130);
    silent.closeAllConnections();
    silent.close();
  });
});

describe('webhooks, operations and recovery points', () => {
  const json = async (args: readonly string[], options = {}) =>
    JSON.parse(await user.ok([...args, '--json'], options));

  test('are made, listed and removed', async () => {
    const url = 'https://hooks.invalid/hook';
    const made = await json(['webhook', 'create', url, '--event', 'vm.failed', '--event', 'credits.low']);
    assert.match(made.secret, /^whsec_/);
    assert.match(
      await user.ok(['webhook', 'ls']),
      new RegExp(`${url} +vm.failed credits.low +ok +${made.id}`),
    );
    await user.fails(1, ['webhook', 'create', url, '--event', 'no.such']);
    assert.equal(await user.ok(['webhook', 'disable', url]), `${url} is disabled\n`);
    await user.ok(['webhook', 'enable', made.id]);
    await user.ok(['webhook', 'test', url]);
    assert.match(await user.ok(['webhook', 'log', url]), /^webhook\.test +/m);
    await user.fails(2, ['webhook', 'rm', url]);
    await user.ok(['webhook', 'rm', url, '--yes']);
    await user.fails(5, ['webhook', 'show', made.id]);
  });

  test('operations are listed, newest first', async () => {
    assert.equal(await user.ok(['ops']), 'CALL  STATE  BEGUN  ENDED  ID\n');
    const api = new Client(cloud.api, user.key);
    const call = { json: { name: 'made-later' }, headers: { prefer: 'respond-async' } };
    const { operation_id: id } = (await api.call('/api/buckets', call)).body;
    // The key of the profile lists its own; the account's own key lists all.
    const env = { CLOUDLET_URL: cloud.api, CLOUDLET_API_KEY: user.key };
    await user.fails(5, ['ops', id]);
    await user.ok(['ops', id, '--wait'], { env });
    assert.match(await user.ok(['ops'], { env }), new RegExp(`^createBucket +succeeded .* ${id}$`, 'm'));
  });

  test('an administrator makes, verifies and removes recovery points', async () => {
    const env = { CLOUDLET_URL: cloud.api, CLOUDLET_API_KEY: ADMIN_KEY };
    const point = await json(['recovery', 'create', '--wait'], { env });
    assert.equal(point.state, 'complete');
    const verified = await json(['recovery', 'verify', point.point_id, '--wait'], { env });
    assert.match(verified.state, /verified|drilled/);
    assert.match(
      await user.ok(['recovery', 'ls'], { env }),
      new RegExp(`^${point.point_id} +${verified.state} `, 'm'),
    );
    await user.fails(2, ['recovery', 'rm', point.point_id], { env });
    assert.match(await user.ok(['recovery', 'rm', point.point_id, '-y'], { env }), /removed permanently at/);
  });
});

describe('completion', () => {
  const CASES = [
    ['cloudlet who', 'whoami'],
    ['cloudlet profile r', 'rm'],
    ['cloudlet webhook cr', 'create'],
    ['cloudlet login --dev', '--device'],
    ['cloudlet vm stop --fo', '--force'],
    ['cloudlet help web', 'webhook'],
    ['cloudlet db show sho', 'shop'],
  ] as const;

  /** For the names of resources. */
  let PATH = '';
  before(async () => {
    const api = new Client(cloud.api, user.key);
    await api.call('/api/databases', { json: { name: 'shop' } });
    mkdirSync(join(user.home, 'bin'));
    const script = `#!/bin/sh\nHOME='${user.home}' exec '${process.execPath}' '${PROGRAM}' "$@"\n`;
    writeFileSync(join(user.home, 'bin/cloudlet'), script, { mode: 0o755 });
    PATH = `${join(user.home, 'bin')}:${process.env.PATH}`;
  });

  test('works in bash', async () => {
    const script = join(user.home, 'completion.bash');
    writeFileSync(script, await user.ok(['completion', 'bash']));
    for (const [typed, completed] of CASES) {
      const ask = `. "${script}"; COMP_WORDS=(${typed}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _cloudlet; echo "\${COMPREPLY[*]}"`;
      assert.equal(
        execFileSync('bash', ['--norc', '-c', ask], { encoding: 'utf8', env: { PATH } }).trim(),
        completed,
        typed,
      );
    }
  });

  test('works in fish', { skip: notInstalled('fish') }, async () => {
    const script = join(user.home, 'completion.fish');
    writeFileSync(script, await user.ok(['completion', 'fish']));
    const env = { ...process.env, PATH, HOME: user.home, XDG_DATA_HOME: join(user.home, 'fish') };
    for (const [typed, completed] of CASES) {
      const ask = `source ${script}; complete --do-complete '${typed}'`;
      const said = execFileSync('fish', ['--no-config', '-c', ask], { encoding: 'utf8', env });
      assert.deepEqual(
        said
          .trim()
          .split('\n')
          .map((line) => line.split('\t')[0]),
        [completed],
        typed,
      );
    }
  });

  test('works in zsh', { skip: notInstalled('zsh') || cannotOpenTerminal }, async () => {
    const script = join(user.home, 'completion.zsh');
    writeFileSync(script, await user.ok(['completion', 'zsh']));
    const start = [
      `PS1='READY> '; PROMPT_EOL_MARK=''; autoload -Uz compinit; compinit -u -D`,
      `. ${script}; cloudlet() { [ $1 = completion ] && command cloudlet "$@" || print -r -- "GOT<$*>"; }`,
    ].join('; ');
    writeFileSync(join(user.home, '.zshrc'), `${start}\n`);
    const [command = '', ...args] = inTerminal('zsh -i');
    const env = { PATH, HOME: user.home, TERM: 'dumb' };
    const shell = spawn(command, args, { env });
    let seen = '';
    shell.stdout.setEncoding('utf8').on('data', (text) => {
      seen += text;
    });
    try {
      await eventually('a prompt of zsh', () => /READY> /.test(seen));
      for (const [typed, completed] of CASES) {
        shell.stdin.write(`${typed}\t`);
        await eventually(`${typed} in ${JSON.stringify(seen)}`, () => seen.includes(`${completed} `));
        shell.stdin.write('\n');
        const whole = [...typed.split(' ').slice(1, -1), completed].join(' ');
        await eventually(`${whole} in ${JSON.stringify(seen)}`, () => seen.includes(`GOT<${whole}>`));
        seen = '';
      }
    } finally {
      shell.kill('SIGKILL');
    }
  });
});

const ESCAPE = String.fromCharCode(27);
/** To the first column, and nothing after it. */
const CLEARED = `\r${ESCAPE}[K`;

describe('at a terminal', { skip: cannotOpenTerminal }, () => {
  /** Runs a command on a terminal; `answer` is the text typed when `question` appears. */
  async function typed(line: string, question: RegExp, answer: string) {
    const [command = '', ...args] = inTerminal(`"${process.execPath}" "${PROGRAM}" ${line}`);
    const env = { PATH: process.env.PATH, HOME: user.home };
    const child = spawn(command, ['--return', ...args], { env, cwd: user.home });
    let seen = '';
    let isAnswered = false;
    child.stdout.setEncoding('utf8').on('data', (text) => {
      seen += text;
      if (!isAnswered && question.test(seen)) {
        isAnswered = true;
        child.stdin.write(answer);
      }
    });
    const [code] = await once(child, 'close');
    return { code, seen };
  }

  test('what deletes asks first, and only yes means it', async () => {
    await user.ok(['mb', 'asked']);
    const question = /Delete asked with 0 objects, 0 B, permanently\? \[y\/N\]/;
    for (const answer of ['\n', 'n\n', 'maybe\n']) {
      const { code, seen } = await typed('bucket rm asked', question, answer);
      assert.deepEqual([code, question.test(seen)], [2, true], seen);
    }
    const stopped = await typed('bucket rm asked', question, '\u0003');
    assert.equal(stopped.code, 130, stopped.seen);
    await user.ok(['bucket', 'show', 'asked']);
    const { code, seen } = await typed('bucket rm asked', question, 'yes\n');
    assert.equal(code, 0, seen);
    await user.fails(5, ['bucket', 'show', 'asked']);
  });

  test('rm -r says how much it is, and what comes first', async () => {
    const api = new Client(cloud.api, user.key);
    await api.call('/api/buckets', { json: { name: 'removed' } });
    for (const name of ['d/1', 'd/2', 'd/3', 'd/4', 'd-not']) await api.upload('removed', name, 'x');
    const { code, seen } = await typed(
      '-q rm -r s3://removed/d',
      /Delete these 4 objects, 4 B\? \[y\/N\]/,
      'n\n',
    );
    assert.equal(code, 2, seen);
    const [first, ...names] = seen.split(/\r?\n/);
    assert.equal(first, 's3://removed/d: 4 objects, 4 B');
    assert.deepEqual(names.slice(0, 4), [
      '  s3://removed/d/1',
      '  s3://removed/d/2',
      '  s3://removed/d/3',
      '  …',
    ]);
    assert.equal(JSON.parse(await user.ok(['du', '--json', 's3://removed'])).objects, 5);
    assert.match(await user.fails(2, ['rm', '-r', 's3://removed/d']), /4 objects/);
  });

  test('progress is one line that is drawn again; in a pipe there are plain lines', async () => {
    await user.ok(['mb', 'progress']);
    writeFileSync(join(user.home, 'large'), Buffer.alloc(192 * 2 ** 20, 'x'));
    const shown = await typed('cp large s3://progress/large', /$^/, '');
    assert.equal(shown.code, 0, shown.seen);
    const [, ...lines] = shown.seen.split(CLEARED);
    const line = /^0 files, [\d.]+ [KMG]?i?B of 192 MiB, [\d.]+ [KMG]?i?B\/s, \d+ s left$/;
    assert.ok(lines.filter((each) => line.test(each)).length >= 1, JSON.stringify(shown.seen));
    const { stderr } = await user.run(['cp', 's3://progress/large', 'copy']);
    assert.ok(!stderr.includes('\r') && !stderr.includes(ESCAPE), JSON.stringify(stderr));
    assert.match(stderr, /^download: s3:\/\/progress\/large → copy$/m);
  });
});

describe('restore --at', () => {
  test('finds a version behind more than a page of later ones', async () => {
    const api = new Client(cloud.api, user.key);
    await api.call('/api/buckets', { json: { name: 'versions', versioning: true } });
    await api.upload('versions', 'a', 'the first');
    const [{ created_at }] = (await api.call('/api/buckets/versions/files')).body;
    // Times are in whole seconds: later files must be from a later one.
    await new Promise((resolve) => setTimeout(resolve, 1100));
    for (let i = 0; i < 1100; i += 10) {
      await Promise.all(Array.from({ length: 10 }, () => api.upload('versions', 'a', `later ${i}`)));
    }
    await api.upload('versions', 'ab', 'another name');
    const at = `${created_at.replace(' ', 'T')}Z`;
    await user.ok(['restore', 's3://versions/a', '--at', at]);
    assert.equal(await user.ok(['cat', 's3://versions/a']), 'the first');
    await user.fails(5, ['restore', 's3://versions/a', '--at', '2020-01-01T00:00:00Z']);
    await user.fails(2, ['restore', 's3://versions/a', '--at', 'yesterday']);
  });
});
