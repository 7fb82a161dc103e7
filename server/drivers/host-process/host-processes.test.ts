/** The promises of the sandbox, with each kind of isolation that this host allows. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { createServer } from 'node:net';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { systemClock } from '../../platform/clock.ts';
import type { AppError } from '../../platform/errors.ts';
import { eventually } from '../../testing/eventually.ts';
import { noGuestUsers, noOtherReaders, noUsers, testUidBase } from '../../testing/own-ground.ts';
import { allowedProcessors } from '../../testing/processors.ts';
import type { ForeignProgram } from './foreign-program.ts';
import { HostProcesses } from './host-processes.ts';
import { findIsolation, type Isolation, seenUser } from './isolation.ts';
import { endOrphans, orphans } from './orphans.ts';
import { isAlive, isThere, RUN } from './process-identity.ts';
import { withoutFirst } from './processor-order.ts';
import { findFilter } from './system-calls.ts';

const noFilter = (await findFilter()).problem || false;
const MODULE = new URL('./host-processes.ts', import.meta.url).href;
const CLOCK = new URL('../../platform/clock.ts', import.meta.url).href;
const GROUP = 'cloudlet-processes-test';
const UID = testUidBase();
const PIPES = ['ignore', 'pipe', 'pipe'] as const;
const PLAIN: Isolation = { hasView: false, hasNoNetwork: false, inUserNamespace: false, problem: 'a test' };
const [asRoot, asUser] = await Promise.all([findIsolation(true), findIsolation(false)]);
const ISOLATIONS = {
  'with users of their own, isolated': noUsers === null && asRoot.hasView ? asRoot : null,
  'as our own user, isolated': asUser.hasView ? asUser : null,
  'with users of their own, in plain view': noUsers === null ? PLAIN : null,
  'as our own user, in plain view': PLAIN,
};

for (const [name, found] of Object.entries(ISOLATIONS)) {
  describe(`a foreign process ${name}`, { skip: found ? false : 'this host does not allow it' }, () => {
    const isolation = found ?? PLAIN;
    const hasUsers = name.startsWith('with');
    const isIsolated = isolation.hasView;
    const isolated = { skip: isIsolated ? false : 'it is in plain view' };
    const uid = hasUsers ? UID : null;
    // Inaccessible to other users, like a data directory.
    const root = fs.mkdtempSync(join(tmpdir(), 'cloudlet-process-'));
    const deps = { clock: systemClock, group: GROUP, hasUsers, isolation, ground: root };
    const processes = new HostProcesses(deps);
    let folder: string;
    let count = 0;
    before(() => {
      folder = join(root, "it's $HOME \\ `here`");
      fs.mkdirSync(folder, { mode: 0o700 });
      if (uid !== null) fs.chownSync(folder, uid, uid);
      fs.writeFileSync(join(root, 'master.key'), 'secret', { mode: 0o600 });
    });
    after(() => fs.rmSync(root, { recursive: true, force: true }));

    const script = (lines: string, more: Partial<ForeignProgram> = {}): ForeignProgram => ({
      name: `test-${process.pid}-${count++}`,
      command: '/bin/sh',
      args: ['-c', lines],
      env: {},
      uid,
      folder,
      network: 'host',
      memoryMb: 512,
      ...more,
    });
    const newKeeper = () => fs.mkdtempSync(join(root, 'keeper-'));
    /** Its output, and its exit. */
    async function outcome(program: ForeignProgram) {
      const running = await processes.start(program, { stdio: PIPES });
      const { stdout, stderr } = running.child ?? {};
      assert.ok(stdout && stderr);
      const [out, err, { code, signal }] = await Promise.all([text(stdout), text(stderr), running.ended]);
      return { out, err, code, signal };
    }
    /** A process of ours that starts `program`, and is then killed. */
    async function startedByAnother(program: ForeignProgram, start: string): Promise<number> {
      const given = JSON.stringify({ ...deps, clock: undefined });
      const code = `
      import { HostProcesses } from ${JSON.stringify(MODULE)};
      import { systemClock } from ${JSON.stringify(CLOCK)};
      const processes = new HostProcesses({ clock: systemClock, ...${given} });
      const program = ${JSON.stringify(program)};
      console.log((await ${start}).pid);
      setInterval(() => {}, 1000);`;
      // With a descriptor of the process that started it.
      const words = ['-c', 'exec 90</dev/null; exec "$@"', 'bash', process.execPath, '--input-type=module'];
      const other = spawn('/bin/bash', [...words, '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
      const ended = once(other, 'exit');
      try {
        const [line] = await once(other.stdout, 'data');
        assert.ok(fs.existsSync(`/proc/${other.pid}/fd/90`));
        assert.ok(!fs.readdirSync(`/proc/${Number(line)}/fd`).includes('90'));
        return Number(line);
      } finally {
        other.kill('SIGKILL');
        await ended;
      }
    }

    test('runs under a filter of system calls, as do its children', { skip: noFilter }, async () => {
      const calls = 'print syscall($_, 0, 0, 0) . "/" . ($! + 0) . " " for (425, 321, 250, 435)';
      const lines = `grep Seccomp: /proc/self/status; sh -c 'grep Seccomp: /proc/self/status'
        unshare --user true 2>/dev/null; echo $?; mount -t tmpfs none /tmp 2>/dev/null; echo $?
        perl -e '${calls}'`;
      const { out } = await outcome(script(lines));
      assert.deepEqual(out.trim().split('\n').slice(0, 4), ['Seccomp:\t2', 'Seccomp:\t2', '1', '32']);
      if (process.arch === 'x64') assert.match(out, /\n-1\/1 -1\/1 -1\/1 -1\/38 $/);
    });

    test('sees its folder, the programs, and nothing else of the host', isolated, async () => {
      fs.writeFileSync(join(folder, 'mine'), 'mine');
      const lines = `echo / /own/* /home* /root* /etc/*
        cat ${root}/master.key; cat mine; echo $PPID; id -u; pwd`;
      const { out, err } = await outcome(script(lines));
      const [files, rest] = [out.split('\n')[0], out.split('\n').slice(1)];
      assert.match(
        files ?? '',
        /^\/ \/own\/mine \/home\* \/root\* \/etc\/alternatives \/etc\/fstab \/etc\/group /,
      );
      assert.deepEqual(rest, ['mine0', String(uid ?? seenUser(isolation)), '/own', '']);
      assert.match(err, /master\.key/);
      const seen = await outcome(script('echo /proc/[0-9]*; echo >/usr/mine; mount -t tmpfs none /tmp'));
      assert.equal(seen.out, '/proc/1\n');
      assert.notEqual(seen.code, 0);
      assert.match(seen.err, /\/usr\/mine/);
    });

    test('is shown what is where this host lets no program run', async () => {
      // systemd mounts /proc in this way.
      const { code, err } = await outcome(script(':', { readOnly: ['/proc/version'] }));
      assert.deepEqual([code, err], [0, '']);
    });

    test('is at home in its folder, reads what it is shown, and none of our files', async () => {
      const shown = join(root, 'program');
      fs.mkdirSync(shown, { mode: 0o755 });
      fs.writeFileSync(join(shown, 'code'), 'code');
      const home = await processes.pathOf(folder);
      const lines = 'echo mine >"$1/file"; cat "$1/file" "$2"; ls "$3"; cat "$3/master.key"';
      const args = ['-c', lines, 'sh', home, join(shown, 'code'), root];
      const { out } = await outcome(script('', { args, readOnly: [shown] }));
      assert.ok(out.startsWith('mine\ncode'), out);
      // Without a view a process of our own user sees the same files as we do.
      if (hasUsers || isIsolated) assert.ok(!out.includes('secret'), out);
      fs.rmSync(shown, { recursive: true });
    });

    test('sees what it is shown where that is, and cannot change it', isolated, async () => {
      const shown = join(root, 'shown folder');
      const file = join(root, 'shown.txt');
      fs.mkdirSync(shown, { mode: 0o755 });
      for (const path of [join(shown, 'inside'), file]) fs.writeFileSync(path, 'shown', { mode: 0o666 });
      const lines = 'cat "$1/inside" "$2"; echo x >"$1/inside"; echo x >"$2"; exec ls "$3"';
      const words = ['-c', lines, 'sh', shown, file, root];
      const { out, err } = await outcome(script('', { args: words, readOnly: [shown, file] }));
      assert.equal(out, 'shownshownshown folder\nshown.txt\n');
      assert.equal(err.match(/Read-only|Permission/gi)?.length, 2);
      await assert.rejects(
        processes.start(script('', { readOnly: ['shown'] }), { stdio: PIPES }),
        /not absolute/,
      );
    });

    test('gets its words, its variables and its streams, and no right or descriptor of ours', async () => {
      const env = { PASSWORD: "it's\n$A `b` \\", INNER: 'INNER\nINNER_' };
      const lines = `cat; printf '%s|' "$@" "$PASSWORD" "$INNER"; tr '\\0' ' ' </proc/$$/environ | wc -l
      ls /proc/$$/fd; grep -E 'CapEff|CapPrm|NoNewPrivs' /proc/$$/status | tr -d '\\n'; pwd`;
      const args = ['-c', lines, 'sh', '', 'a b', "''", 'ü', '\n'];
      const fd = fs.openSync('/dev/null', 'r');
      const running = await processes.start(script('', { args, env }), {
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      fs.closeSync(fd);
      running.child?.stdin?.end('input|');
      const out = await text(running.child?.stdout ?? assert.fail());
      const values = `input||a b|''|ü|\n|${env.PASSWORD}|${env.INNER}|`;
      const rights = 'CapPrm:\t0000000000000000CapEff:\t0000000000000000NoNewPrivs:\t1';
      assert.equal(out, `${values}2\n0\n1\n2\n${rights}${await processes.pathOf(folder)}\n`);
      assert.deepEqual(await running.ended.then(({ code, signal }) => [code, signal]), [0, null]);
    });

    test('ends as it likes when asked, and is killed with all that it made when it does not', async () => {
      const start = async (lines: string) => {
        const running = await processes.start(script(lines), { stdio: PIPES });
        await once(running.child?.stdout ?? (running.child?.stdin as never), 'data');
        return running;
      };
      const willing = await start('trap "exit 7" TERM; echo here; while :; do sleep 0.05; done');
      assert.deepEqual(await willing.end({ graceMs: 30_000 }).then(({ code }) => code), 7);
      const session = isIsolated ? 'setsid ' : '';
      const deaf = await start(`trap "" TERM; ${session}sleep 600 & echo here; while :; do sleep 0.05; done`);
      const closed = once(deaf.child ?? assert.fail(), 'close');
      const { signal, at } = await deaf.end({ graceMs: 100 });
      assert.equal(signal, 'SIGKILL');
      assert.ok(at !== null && at > 0);
      // The other process held its streams.
      await closed;
      assert.equal(deaf.isAlive, false);
    });

    test('ends with us, whatever ends us', async () => {
      const program = script('trap "" TERM HUP INT; while :; do sleep 0.05; done');
      const pid = await startedByAnother(
        program,
        `processes.start(program, { stdio: ['ignore', 'ignore', 'ignore'] })`,
      );
      await eventually(() => !isThere(pid));
    });

    test('runs on when we were killed, is adopted, not doubled, and its end is known', async () => {
      const keeper = newKeeper();
      const program = script('trap "exit 9" TERM; echo said; while :; do sleep 0.05; done');
      const pid = await startedByAnother(program, `processes.keep(program, ${JSON.stringify(keeper)})`);
      const adopted = (await processes.adopt(program, keeper)) ?? assert.fail();
      assert.deepEqual([adopted.pid, adopted.isAlive, processes.lastEnd(keeper)], [pid, true, null]);
      await assert.rejects(processes.keep(program, keeper), ({ cause }) =>
        /runs already/.test(String(cause)),
      );
      assert.ok(isThere(pid));
      assert.equal((await adopted.end({ graceMs: 30_000 })).code, 9);
      assert.equal(await processes.adopt(program, keeper), null);
      assert.equal(processes.lastEnd(keeper)?.code, 9);
      assert.equal(fs.readFileSync(join(keeper, 'log'), 'utf8'), 'said\n');
    });

    test('that ended while nobody watched is known to have, and how', async () => {
      const keeper = newKeeper();
      const program = script('sleep 600');
      const pid = await startedByAnother(program, `processes.keep(program, ${JSON.stringify(keeper)})`);
      process.kill(pid, 'SIGKILL');
      const end = await eventually(() => processes.lastEnd(keeper));
      assert.deepEqual([end.code, end.signal], [null, 'SIGKILL']);
      assert.equal(await processes.adopt(program, keeper), null);
      const again = await processes.keep(program, keeper);
      assert.equal(processes.lastEnd(keeper), null);
      await again.end({ graceMs: 0 });
    });

    test('is an orphan once the folder of its keeper is removed, not when it is moved', async () => {
      const keeper = newKeeper();
      const program = script('trap "" TERM HUP; while :; do sleep 0.05; done');
      const pid = await startedByAnother(program, `processes.keep(program, ${JSON.stringify(keeper)})`);
      const ours = () => orphans().filter((orphan) => orphan.folder.startsWith(`${root}/`));
      const moved = `${keeper}-moved`;
      fs.renameSync(keeper, moved);
      assert.deepEqual(ours(), []);
      assert.equal((await processes.adopt(program, moved))?.pid, pid);
      fs.rmSync(moved, { recursive: true });
      const found = ours().map(({ folder: of, process }) => [of, process.pid]);
      // The cloud of another test that starts meanwhile ends it too.
      if (isThere(pid)) assert.deepEqual(found, [[moved, pid]]);
      await endOrphans(() => {}, ours());
      await eventually(() => !isThere(pid));
      assert.deepEqual(ours(), []);
    });

    test('is not taken for another that has its number', async () => {
      const keeper = newKeeper();
      const program = script('sleep 600');
      const running = await processes.keep(program, keeper);
      const path = join(keeper, RUN);
      const written = fs.readFileSync(path, 'utf8');
      const { startTime, bootId } = running.identity;
      for (const [was, is] of [
        [` ${startTime} `, ` ${startTime - 1} `],
        [bootId, 'another'],
      ] as const) {
        fs.writeFileSync(path, written.replace(was, is));
        assert.equal(await processes.adopt(program, keeper), null);
      }
      fs.writeFileSync(path, written);
      assert.equal((await processes.adopt(program, keeper))?.pid, running.pid);
      assert.equal(isAlive({ ...running.identity, uid: 4711 }), false);
      await running.end({ graceMs: 0 });
    });

    test('yields the processor to us, where no control group weighs it', async () => {
      const running = await processes.start(script('sleep 600'), { stdio: PIPES });
      const isWeighed = processes.cgroups.problem === '';
      assert.equal(getPriority(running.pid), isWeighed ? 0 : 5);
      const [own, its] = [process.pid, running.pid].map((pid) => {
        const path = `/proc/${pid}/autogroup`;
        return fs.existsSync(path) ? fs.readFileSync(path, 'utf8').trim() : '';
      });
      // The scheduler weighs a session before its processes.
      if (own?.split(' ')[0] !== its?.split(' ')[0]) assert.match(its ?? '', isWeighed ? / 0$/ : / 5$/);
      await running.end({ graceMs: 0 });
    });

    test('yields from its first instruction on, to its siblings too when it is last', async () => {
      const lines = `cut -d' ' -f19 /proc/self/stat; grep Cpus_allowed_list /proc/self/status`;
      const said = async (isLast: boolean) => {
        const { child } = await processes.start(script(lines), { stdio: PIPES, isLast });
        const [nice, allowed] = (await text(child?.stdout as Readable)).split('\n');
        return { nice, allowed: allowed?.split('\t')[1] };
      };
      const isWeighed = processes.cgroups.problem !== '';
      const all = allowedProcessors('self');
      assert.deepEqual(await said(false), { nice: isWeighed ? '5' : '0', allowed: all });
      const { nice, allowed } = await said(true);
      assert.equal(allowed, withoutFirst(all) ?? all);
      if (isWeighed && process.getuid?.() === 0) assert.equal(nice, '19');
    });

    test('gets no more memory than it may have', async () => {
      const take = (mb: number) =>
        script('', { command: '/usr/bin/perl', args: ['-e', `$x = 'x' x ${mb * 2 ** 20}`], memoryMb: 128 });
      assert.deepEqual(await outcome(take(16)), { out: '', err: '', code: 0, signal: null });
      const { code, signal } = await outcome(take(256));
      assert.ok(code !== 0 || signal === 'SIGKILL', `${code} ${signal}`);
    });

    test('writes no larger file than it may, and no core', async () => {
      const lines = 'trap "" XFSZ; head -c 1048577 /dev/zero >large; wc -c <large; rm large; ulimit -c';
      const { out } = await outcome(script(lines, { fileMb: 1 }));
      assert.equal(out, '1048576\n0\n');
    });

    test('reaches no address, or those of the host', {
      skip: isolation.hasNoNetwork ? false : 'no networks here',
    }, async (t) => {
      const server = createServer((socket) => socket.end('here')).listen(0, '127.0.0.1');
      t.after(() => server.close());
      await once(server, 'listening');
      const { port } = server.address() as { port: number };
      const call = `use IO::Socket::INET;
        my $s = IO::Socket::INET->new('127.0.0.1:${port}') or die; print <$s>`;
      const program = (network: 'none' | 'host') =>
        script('', { command: '/usr/bin/perl', args: ['-e', call], network });
      assert.equal((await outcome(program('host'))).out, 'here');
      assert.notEqual((await outcome(program('none'))).code, 0);
    });

    const node = { skip: hasUsers && !isIsolated && noOtherReaders };
    test('may be Node, and talk to us over its channel', node, async () => {
      const code = `process.on('message', (one) => process.send({ got: one }));
        process.on('disconnect', () => process.exit(5))`;
      const node = {
        command: process.execPath,
        readOnly: [process.execPath],
        args: ['-e', code],
        memoryMb: 1024,
      };
      const running = await processes.start(script('', { ...node, network: 'none' }), {
        stdio: ['ignore', 'inherit', 'inherit'],
        ipc: true,
      });
      running.child?.send({ a: 1 });
      const [message] = await once(running.child ?? assert.fail(), 'message');
      assert.deepEqual(message, { got: { a: 1 } });
      running.child?.disconnect();
      assert.equal((await running.ended).code, 5);
    });

    test('that cannot be started is an error, and leaves nothing', async () => {
      const missing = script('', { command: '/usr/bin/no-such-program' });
      await assert.rejects(
        processes.start(missing, { stdio: PIPES }),
        ({ code, cause }: Error & { code: string }) =>
          code === 'internal_error' && /is no program here/.test(String(cause)),
      );
      const nowhere = script('true', { folder: join(root, 'nowhere') });
      await assert.rejects(processes.keep(nowhere, newKeeper()), { code: 'internal_error' });
    });
  });
}

test('a process of another user is refused where a directory above does not let it pass, and it is named', {
  skip: noGuestUsers,
}, async () => {
  const root = fs.mkdtempSync(join(tmpdir(), 'cloudlet-process-'));
  after(() => fs.rmSync(root, { recursive: true }));
  const folder = join(root, 'data', 'tenant');
  fs.mkdirSync(folder, { recursive: true });
  const ground = join(root, 'data');
  const options = { clock: systemClock, group: GROUP, hasUsers: true, isolation: PLAIN, ground };
  const program = { name: `test-${process.pid}-shut`, command: '/bin/true', args: [], uid: UID, folder };
  const start = new HostProcesses(options).start(
    { ...program, network: 'host', memoryMb: 64 },
    { stdio: PIPES },
  );
  await assert.rejects(start, (error: AppError) => {
    assert.equal(error.code, 'engine_unavailable');
    return error.message.includes(`${root} is not traversable by other users`);
  });
  assert.equal(fs.statSync(root).mode & 0o777, 0o700);
});
