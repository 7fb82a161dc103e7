/** A machine from afar, by the client: a shell, files, ports. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { CliUser, PROGRAM } from './cli-kit.ts';
import { cannotRunGuests, removeAll } from './vms-kit.ts';

const skip = cannotRunGuests() || notInstalled('ssh');
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
  // While it boots. A host that ssh does not know would be told on stderr.
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
    // The key itself would still open the machine, whoever asks: what ends with the API key is the loan.
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
