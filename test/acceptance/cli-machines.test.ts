/** A remote machine with the client: a shell, files, ports. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { freePort } from '../harness/free-port.ts';
import { cannotOpenTerminal } from '../harness/terminal.ts';
import { eventually } from '../harness/waiting.ts';
import { CliUser, PROGRAM, TerminalSession } from './cli-kit.ts';
import { cannotRunGuests, removeAll } from './vms-kit.ts';

const skip = cannotRunGuests() || notInstalled('ssh', 'curl');
const WEB = '#!/bin/sh\nmkdir -p /www\necho hello >/www/index.html\nhttpd -p 3000 -h /www\n';

let cloud: CloudProcess;
let user: CliUser & { readonly key: string };
before(async () => {
  if (skip) return;
  cloud = await CloudProcess.start();
  user = await CliUser.signedIn(cloud.api);
  writeFileSync(join(user.home, 'web.sh'), WEB);
  await user.ok(['vm', 'create', 'web-1', '--start', '--user-data', 'web.sh']);
});
after(async () => {
  if (skip) return;
  await removeAll((await CheckedClient.open(cloud.api)).as(user.key));
  user.remove();
  await cloud.stop();
});

test('a command runs on it, with its host key known before', { skip }, async () => {
  // While it boots. ssh would report an unknown host on stderr.
  const first = await user.run(['vm', 'ssh', 'web-1', '--', 'hostname']);
  assert.deepEqual(first, { code: 0, stdout: 'web-1\n', stderr: '' });
  const config = await user.ok(['vm', 'ssh-config', 'web-1']);
  assert.match(config, /^ {2}StrictHostKeyChecking yes$/m);
  assert.equal((await user.run(['vm', 'ssh', 'web-1', '--', 'exit 7'])).code, 7);
});

test('files go there and back, one connection after the other', { skip }, async () => {
  writeFileSync(join(user.home, 'there.txt'), 'there');
  for (let round = 0; round < 2; round++) {
    await user.ok(['vm', 'cp', 'there.txt', 'web-1:there.txt']);
    await user.ok(['vm', 'cp', 'web-1:there.txt', 'back.txt']);
    assert.equal(readFileSync(join(user.home, 'back.txt'), 'utf8'), 'there');
  }
});

test('folders and names of any kind go there and back', { skip }, async () => {
  const names = ['a b', '-dash', "it's", 'co:lon', '$HOME', 'sub/ä*'];
  mkdirSync(join(user.home, 'my folder/sub'), { recursive: true });
  for (const name of names) writeFileSync(join(user.home, 'my folder', name), name);
  await user.ok(['vm', 'cp', '-r', 'my folder', 'web-1:']);
  await user.ok(['vm', 'cp', '-r', 'web-1:my folder', 'back']);
  for (const name of names) assert.equal(readFileSync(join(user.home, 'back', name), 'utf8'), name);
  const cwd = join(user.home, 'my folder');
  await user.ok(['vm', 'cp', '--', '-dash', './co:lon', 'web-1:my folder/sub/'], { cwd });
  await user.ok(['vm', 'cp', 'web-1:my folder/sub/-dash', 'web-1:my folder/sub/co:lon', user.home]);
  for (const name of ['-dash', 'co:lon']) assert.equal(readFileSync(join(user.home, name), 'utf8'), name);
  await user.fails(2, ['vm', 'cp', 'a', 'b']);
  assert.match(await user.fails(1, ['vm', 'cp', 'web-1:none', 'b']), /No such file/);
});

/** A program of OpenSSH that reads the output of `vm ssh-config`. */
function openSsh(program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const own = { PATH: process.env.PATH, HOME: user.home, ...env };
  const all = ['-F', 'ssh_config', '-o', 'BatchMode=yes', ...args];
  return spawnSync(program, all, { cwd: user.home, env: own, encoding: 'utf8', timeout: 60_000, input: '' });
}

test('scp, sftp and editors come by the settings, whatever keys an agent has', { skip }, async () => {
  writeFileSync(join(user.home, 'ssh_config'), await user.ok(['vm', 'ssh-config', 'web-1']));
  writeFileSync(join(user.home, 'a b.txt'), 'by scp');
  assert.equal(openSsh('scp', ['a b.txt', 'web-1:c d.txt']).stderr, '');
  assert.equal(openSsh('ssh', ['web-1', "cat 'c d.txt'"]).stdout, 'by scp');
  assert.match(openSsh('sftp', ['-b', '-', 'web-1']).stderr, /^$/);
  // An editor starts a shell without a terminal, and reaches ports of the machine through the connection.
  const port = await freePort();
  const words = ['-T', '-D', String(port), '-o', 'ConnectTimeout=15', '-o', 'ServerAliveInterval=5'];
  const editor = spawn('ssh', ['-F', 'ssh_config', ...words, 'web-1', 'sh'], {
    cwd: user.home,
    env: { PATH: process.env.PATH, HOME: user.home },
  });
  let said = '';
  editor.stdout.setEncoding('utf8').on('data', (text) => {
    said += text;
  });
  editor.stdin.write('echo ready\n');
  await eventually('the shell', () => said === 'ready\n');
  const page = spawnSync('curl', ['-s', '--socks5', `127.0.0.1:${port}`, 'http://127.0.0.1:3000/']);
  assert.equal(String(page.stdout), 'hello\n');
  editor.stdin.end('exit 3\n');
  const [code] = await once(editor, 'close');
  assert.equal(code, 3);
});

test('an agent with more keys than a server hears does not keep anybody out', { skip }, async () => {
  const socket = join(user.home, 'agent');
  const agent = spawn('ssh-agent', ['-D', '-a', socket], { stdio: 'ignore' });
  try {
    await eventually('the agent', () => existsSync(socket));
    for (let at = 0; at < 12; at++) {
      const file = join(user.home, `key-${at}`);
      spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file]);
      spawnSync('ssh-add', ['-q', file], { env: { ...process.env, SSH_AUTH_SOCK: socket } });
    }
    const env = { SSH_AUTH_SOCK: socket };
    assert.equal(await user.ok(['vm', 'ssh', 'web-1', '--', 'hostname'], { env }), 'web-1\n');
    const { stdout, stderr } = openSsh('ssh', ['-v', 'web-1', 'hostname'], env);
    assert.equal(stdout, 'web-1\n');
    assert.equal(stderr.match(/Offering public key/g)?.length, 1, 'OpenSSH hears six of them');
  } finally {
    agent.kill();
  }
});

describe('at a terminal', { skip: skip || cannotOpenTerminal }, () => {
  test('a shell on the machine, and its end', async () => {
    const session = new TerminalSession(user, 'vm ssh web-1', {});
    await session.type('echo $((6 * 7)); sleep 99\n', /# /);
    await session.type('\u0003', /^42\r$/m);
    await session.type('exit 5\n', /# /);
    assert.equal(await session.end(), 5);
  });

  test('the console, until Ctrl+]', async () => {
    const session = new TerminalSession(user, 'vm console web-1', {});
    await session.type('\n', /Connected to web-1; press Ctrl\+\] to leave/);
    await session.type('echo $((6 * 7))\n', /# /);
    await session.sees(/^42\r$/m);
    await session.type('\u001d', /# /);
    assert.equal(await session.end(), 0);
  });
});

test('the log goes on as the machine writes, and ends at Ctrl-C or with its reader', { skip }, async () => {
  for (const [end, expected] of [
    [(child: ChildProcess) => child.kill('SIGINT'), 130],
    [(child: ChildProcess) => child.stdout?.destroy(), 0],
  ] as const) {
    const child = user.start(['vm', 'logs', '-f', 'web-1']);
    let [out, err] = ['', ''];
    child.stdout?.setEncoding('utf8').on('data', (text) => {
      out += text;
    });
    child.stderr?.setEncoding('utf8').on('data', (text) => {
      err += text;
    });
    const say = (what: string) => user.ok(['vm', 'ssh', 'web-1', '--', `echo said ${what} >/dev/console`]);
    await say('one');
    await eventually('the line', () => out.includes('said one'));
    const closed = once(child, 'close');
    end(child);
    await say('two');
    const [code] = await closed;
    assert.deepEqual([code, err], [expected, '']);
  }
});

test('a port that the machine does not list is forwarded', { skip }, async () => {
  const child = user.start(['vm', 'forward', 'web-1', '0:3000']);
  let out = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  const address = await eventually('its address', () => /^(127\.0\.0\.1:\d+) /m.exec(out)?.[1]);
  const pages = await Promise.all(
    Array.from({ length: 8 }, async () => (await fetch(`http://${address}/`)).text()),
  );
  assert.deepEqual([...new Set(pages)], ['hello\n']);
  child.kill('SIGINT');
  await once(child, 'close');
});

test('a port is published, listed and taken back by its number', { skip }, async () => {
  const made = JSON.parse(await user.ok(['vm', 'publish', 'web-1', '3000', '--json']));
  assert.match(await user.ok(['vm', 'ports', 'web-1']), /3000\s+yes/);
  assert.equal(await (await fetch(`http://${made.address}/`)).text(), 'hello\n');
  await user.ok(['vm', 'unpublish', 'web-1', String(made.public_port)]);
  await user.fails(5, ['vm', 'unpublish', 'web-1', String(made.public_port)]);
  await assert.rejects(fetch(`http://${made.address}/`));
});

test('a computer whose key the machine was made without is let in for as long as its API key lives', {
  skip,
}, async () => {
  const other = new CliUser();
  try {
    await other.ok(['login', cloud.api, '--key', '-'], { input: user.key });
    const first = await other.run(['vm', 'ssh', 'web-1', '--', 'hostname']);
    assert.deepEqual(first, { code: 0, stdout: 'web-1\n', stderr: '' });
    writeFileSync(join(other.home, 'there.txt'), 'from the other computer');
    await other.ok(['vm', 'cp', 'there.txt', 'web-1:there.txt']);
    assert.match(
      await other.ok(['vm', 'ssh', 'web-1', '--', 'cat', '.ssh/authorized_keys']),
      / cloudlet-lent$/m,
    );
    // The key itself would still give access to the machine: the loan ends with the API key.
    const settings = await other.ok(['vm', 'ssh-config', 'web-1']);
    await other.ok(['logout']);
    const proxy = /^ {2}ProxyCommand .*?( vm proxy \S+ 22) --lend-key.*$/m;
    const without = `  ProxyCommand ${process.execPath} ${PROGRAM}$1`;
    writeFileSync(join(user.home, 'config'), settings.replace(proxy, without));
    const ssh = spawnSync('ssh', ['-F', 'config', '-o', 'BatchMode=yes', 'web-1', 'true'], {
      cwd: user.home,
      env: { PATH: process.env.PATH, HOME: user.home },
      encoding: 'utf8',
    });
    assert.match(ssh.stderr, /Permission denied/);
    assert.doesNotMatch(
      await user.ok(['vm', 'ssh', 'web-1', '--', 'cat', '.ssh/authorized_keys']),
      /cloudlet-lent/,
    );
  } finally {
    other.remove();
  }
});
