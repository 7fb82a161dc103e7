/** A compromised program that swaps the contents of its folder while we connect to it. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { noGuestUsers, noUsers, testUidBase } from '../../testing/own-ground.ts';
import { connectIn } from './foreign-files.ts';

const UID = testUidBase();
const NAME = 'console.sock';
const TIMES_EACH = 1000;

/** Listens on its socket, and gives its name in turn to the socket and to a link to another place. */
const SWAPPING = `
  use IO::Socket::UNIX;
  my ($name, $elsewhere) = @ARGV;
  my $server = IO::Socket::UNIX->new(Local => 'mine', Listen => 128) or die $!;
  if (!fork) { while (1) { my $caller = $server->accept; } }
  $| = 1; print "ready\\n";
  while (1) {
    link 'mine', 'a'; rename 'a', $name; unlink 'a';
    symlink $elsewhere, 'b'; rename 'b', $name;
  }`;

describe('the sockets of a foreign process', () => {
  let root: string;
  let folder: string;
  let victim: Server;
  let reached = 0;
  before(async () => {
    root = fs.mkdtempSync(join(tmpdir(), 'cloudlet-socket-'));
    folder = join(root, 'work');
    fs.mkdirSync(folder, { mode: 0o700 });
    victim = createServer((socket) => {
      reached++;
      socket.destroy();
    });
    victim.listen(join(root, 'control.sock'));
    await once(victim, 'listening');
  });
  after(() => {
    victim.close();
    fs.rmSync(root, { recursive: true, force: true });
  });

  async function outcome(): Promise<'connected' | 'refused'> {
    try {
      (await connectIn(folder, NAME)).destroy();
      return 'connected';
    } catch {
      return 'refused';
    }
  }

  test('a link in their place is not followed, nor is a socket of another user', async (t) => {
    fs.symlinkSync(join(root, 'control.sock'), join(folder, NAME));
    assert.equal(await outcome(), 'refused');
    fs.rmSync(join(folder, NAME));
    fs.writeFileSync(join(folder, NAME), '');
    assert.equal(await outcome(), 'refused');
    fs.rmSync(join(folder, NAME));
    const own = createServer().listen(join(folder, NAME));
    t.after(() => own.close());
    await once(own, 'listening');
    assert.equal(await outcome(), 'connected');
    if (noUsers === null) {
      fs.chownSync(folder, UID, UID);
      assert.equal(await outcome(), 'refused');
    }
    assert.equal(reached, 0);
  });

  test('a folder with a long path is no obstacle', async (t) => {
    const deep = join(root, 'x'.repeat(120));
    fs.mkdirSync(deep);
    process.chdir(deep);
    const own = createServer().listen(NAME);
    t.after(() => own.close());
    await once(own, 'listening');
    process.chdir('/');
    (await connectIn(deep, NAME)).destroy();
  });

  test('a link that is put there in the very moment of the connection leads nowhere', {
    skip: noGuestUsers,
  }, async () => {
    fs.chmodSync(root, 0o711);
    fs.chownSync(folder, UID, UID);
    const words = ['-e', SWAPPING, NAME, join(root, 'control.sock')];
    const options = { cwd: folder, uid: UID, gid: UID, detached: true } as const;
    const foreign: ChildProcess = spawn('/usr/bin/perl', words, options);
    const seen = { connected: 0, refused: 0 };
    try {
      assert.ok(foreign.stdout);
      await once(foreign.stdout, 'data');
      while (seen.connected < TIMES_EACH || seen.refused < TIMES_EACH) seen[await outcome()]++;
    } finally {
      process.kill(-(foreign.pid ?? 0), 'SIGKILL');
    }
    assert.equal(reached, 0, `led elsewhere ${reached} times, and ${JSON.stringify(seen)}`);
  });
});
