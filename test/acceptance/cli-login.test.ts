/** The client is installed from the cloud, signs in, and keeps its secrets. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { cannotOpenTerminal, inTerminal } from '../harness/terminal.ts';
import { CliUser, NODE_20, PROGRAM } from './cli-kit.ts';

const LAUNCHER = fileURLToPath(new URL('../../bin/cloudlet', import.meta.url));
const cloud = await CloudProcess.start();
const client = new Client(cloud.api);
const user = new CliUser();
after(async () => {
  user.remove();
  await cloud.stop();
});
const config = join(user.home, '.config/cloudlet/config.json');
const keysOf = async (key: string) => (await client.as(key).call('/api/account/access-keys')).body;

describe('the package', () => {
  test('comes from the cloud, and npm installs it without a registry', async () => {
    const response = await fetch(`${cloud.api}/cli/cloudlet.tgz`);
    assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'application/gzip']);
    const etag = response.headers.get('etag') ?? '';
    const again = await fetch(`${cloud.api}/cli/cloudlet.tgz`, { headers: { 'if-none-match': etag } });
    assert.equal(again.status, 304);
    const folder = mkdtempSync(join(tmpdir(), 'cloudlet-cli-'));
    try {
      const file = join(folder, 'cloudlet.tgz');
      writeFileSync(file, new Uint8Array(await response.arrayBuffer()));
      const env = { ...process.env, npm_config_offline: 'true', npm_config_cache: join(folder, 'npm') };
      execFileSync('npm', ['install', '--silent', '--global', '--prefix', folder, file], { env });
      const said = execFileSync(join(folder, 'bin/cloudlet'), ['version'], { encoding: 'utf8', env });
      assert.match(said, /^cloudlet \d+\.\d+\.\d+\n$/);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test('is one small file', () => assert.ok(statSync(PROGRAM).size < 1.5e6));

  test('runs on Node 20', { skip: NODE_20 === undefined && 'there is no Node 20' }, async () => {
    const said = await user.ok(['version', '--json'], { node: NODE_20 ?? '' });
    assert.match(JSON.parse(said).node, /^20\./);
  });

  test('is what the launcher on the server calls for the commands of users', async () => {
    const { topics, verbs } = await namedCommands();
    assert.deepEqual(verbs, topics);
    const said = execFileSync(LAUNCHER, ['help', 'login'], { encoding: 'utf8' });
    assert.match(said, /Usage: cloudlet login/);
  });
});

/** First words of the help, and those passed on by the launcher. */
async function namedCommands() {
  const help = await user.ok(['help']);
  const words = [...help.matchAll(/^ {2}([a-z]+)[ \n]/gm)].map(([, word = '']) => word);
  const [, pattern = ''] = /case \$word in\n([^)]*)\)/.exec(readFileSync(LAUNCHER, 'utf8')) ?? [];
  const verbs = pattern.split(/[\s|\\]+/).filter((word) => word !== '');
  // On the server, help and recovery are the operator's; and a sentence of the help begins with its name.
  const topics = [...new Set(words)].filter((word) => !['help', 'cloudlet', 'recovery'].includes(word));
  return { topics: topics.sort(), verbs: verbs.sort() };
}

describe('login', () => {
  test('makes its own key that the console lists, and logout revokes it', async () => {
    const { api_key: key, username } = await client.register();
    const said = await user.ok(['login', cloud.api, '--key', '-'], { input: `${key}\n` });
    assert.match(said, new RegExp(`^Signed in to ${cloud.api} as ${username}, with the key "CLI on `));
    assert.equal(statSync(config).mode & 0o777, 0o600);
    const stored = readFileSync(config, 'utf8');
    assert.ok(!stored.includes(key), 'the key of the account is kept');
    assert.match((await keysOf(key))[0].name, /^CLI on /);
    assert.match(await user.ok(['whoami']), new RegExp(username));
    assert.match(await user.ok(['profile', 'ls']), /^\* {2}127\.0\.0\.1:\d+/m);
    await user.ok(['logout']);
    assert.deepEqual(await keysOf(key), []);
    assert.match(await user.fails(3, ['whoami']), /not signed in/);
  });

  test('again revokes the key of the first time', async () => {
    const { api_key: key } = await client.register();
    const file = join(user.home, 'key');
    writeFileSync(file, key);
    for (const _ of [1, 2]) await user.ok(['login', cloud.api, '--key-file', file, '--name', 'work']);
    assert.equal((await keysOf(key)).length, 1);
    await user.ok(['profile', 'use', 'work']);
    await user.ok(['logout', 'work']);
  });

  test('takes no key as an argument, and none that is wrong', async () => {
    const { api_key: key } = await client.register();
    assert.match(await user.fails(2, ['login', cloud.api, '--key', key]), /visible to other users/);
    assert.doesNotMatch(
      await user.fails(3, ['login', cloud.api, '--key', '-'], { input: 'clk_no' }),
      /clk_no/,
    );
    assert.match(
      await user.fails(8, ['login', 'http://127.0.0.1:9', '--key', '-'], { input: key }),
      /not answer/,
    );
    // With a browser as with a key: no wait at an address without a server.
    assert.match(await user.fails(8, ['login', 'http://127.0.0.1:9']), /not answer/);
    assert.match(await user.fails(2, ['login', cloud.api, '--key', '-'], { input: '' }), /contains no key/);
    assert.match(
      await user.fails(2, ['login', cloud.api, '--device', '--key', '-']),
      /cannot be used together/,
    );
  });

  test('asks at a terminal, and shows nothing of what is typed', { skip: cannotOpenTerminal }, async () => {
    const { api_key: key } = await client.register();
    const [command = '', ...args] = inTerminal(
      `"${process.execPath}" "${PROGRAM}" login ${cloud.api} --key -`,
    );
    const child = spawn(command, args, { env: { PATH: process.env.PATH, HOME: user.home } });
    let seen = '';
    child.stdout.setEncoding('utf8').on('data', (text) => {
      // Typed after the prompt, as by a person, with a corrected mistake.
      if (text.includes('API key for')) child.stdin.write(`${key}xy\u007f\u007f\r`);
      seen += text;
    });
    const [code] = await once(child, 'close');
    assert.equal(code, 0, seen);
    assert.match(seen, /Signed in/);
    assert.ok(!seen.includes(key.slice(0, 12)), seen);
    await user.ok(['logout']);
  });

  test('a profile that others can read is refused', async () => {
    const { api_key: key } = await client.register();
    await user.ok(['login', cloud.api, '--key', '-'], { input: key });
    chmodSync(config, 0o644);
    assert.match(await user.fails(1, ['whoami']), /other users can read .*mode 644/);
    chmodSync(config, 0o600);
    await user.ok(['logout']);
  });

  test('the environment is enough, and wins', async () => {
    const { api_key: key, username } = await client.register();
    const env = { CLOUDLET_URL: cloud.api, CLOUDLET_API_KEY: key };
    const account = JSON.parse(await user.ok(['whoami', '--json'], { env }));
    assert.deepEqual([account.username, account.profile], [username, null]);
    const { CLOUDLET_API_KEY } = env;
    assert.match(await user.fails(2, ['whoami'], { env: { CLOUDLET_API_KEY } }), /CLOUDLET_URL is not/);
  });
});

describe('the command line', () => {
  test('says what is wrong with it', async () => {
    assert.match(await user.fails(2, ['fly']), /unknown command "fly"/);
    assert.match(await user.fails(2, ['whoami', '--loud']), /unknown option --loud/);
    const said = await user.fails(2, ['login', cloud.api, '--key', '--days', '3']);
    assert.match(
      said,
      /^cloudlet: login: Option '--key' argument is ambiguous\n {2}See: cloudlet help login$/m,
    );
    assert.match(await user.fails(2, ['whoami', 'else']), /unexpected argument "else"/);
    assert.match(await user.fails(2, ['profile']), /profile use PROFILE/);
    assert.match(await user.fails(5, ['profile', 'use', 'none']), /no profile none/);
  });

  test('completes in bash', async () => {
    const script = await user.ok(['completion', 'bash']);
    const ask = (words: string) =>
      execFileSync(
        'bash',
        [
          '-c',
          `${script}\nCOMP_WORDS=(${words}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _cloudlet; echo "\${COMPREPLY[*]}"`,
        ],
        {
          encoding: 'utf8',
        },
      ).trim();
    assert.equal(ask('cloudlet who'), 'whoami');
    assert.equal(ask('cloudlet profile r'), 'rm');
    assert.equal(ask('cloudlet login --key-'), '--key-file');
    for (const shell of ['zsh', 'fish']) assert.match(await user.ok(['completion', shell]), /whoami/);
  });
});
