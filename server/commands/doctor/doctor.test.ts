import assert from 'node:assert/strict';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { loadConfig } from '../../config/config.ts';
import { lockDirectory } from '../../drivers/directory-lock.ts';
import { AccelProbe } from '../../drivers/qemu/probe.ts';
import { QemuPrograms } from '../../drivers/qemu/program.ts';
import { type Clock, FakeClock } from '../../platform/clock.ts';
import { noGuestUsers } from '../../testing/own-ground.ts';
import { runDoctor } from './doctor.ts';
import { checkClock, checkDescriptors } from './doctor-host.ts';
import { checkKvm, checkMemory, checkPromises, checkTinyImage } from './doctor-machines.ts';
import { checkVmNetwork } from './doctor-network.ts';

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'doctor-'));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

async function report(settings: Readonly<Record<string, string>> = {}) {
  const lines: string[] = [];
  const config = loadConfig({
    CLOUDLET_DATA_DIR: dataDir,
    CLOUDLET_PORT: '0',
    CLOUDLET_DATA_PORT: '0',
    ...settings,
  });
  const code = await runDoctor({ config, print: (line) => lines.push(line) });
  return {
    code,
    lines,
    about: (subject: string) => lines.find((line) => line.slice(6).startsWith(subject)) ?? '',
  };
}

/** A server that responds like Cloudlet's edge, or like any other. */
async function listening(headers: Readonly<Record<string, string>>, work: (port: string) => Promise<void>) {
  const server = createServer((_, response) => response.writeHead(200, headers).end('{}'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    await work(String((server.address() as AddressInfo).port));
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

describe('doctor', () => {
  test('database servers of your own are asked, and their passwords not repeated', async () => {
    const { code, about, lines } = await report({
      CLOUDLET_POSTGRESQL_URL: 'postgresql://maker:not-to-be-seen@127.0.0.1:1/postgres',
      CLOUDLET_MYSQL_URL: 'mysql://maker:not-to-be-seen@127.0.0.1:1',
      CLOUDLET_MONGODB_URL: 'mongodb://maker:not-to-be-seen@127.0.0.1:1/',
    });
    for (const engine of ['PostgreSQL', 'MySQL/MariaDB', 'MongoDB'])
      assert.match(about(engine), /127\.0\.0\.1:1 cannot be reached.*Fix: start it/);
    assert.ok(!lines.join().includes('not-to-be-seen'));
    assert.equal(code, 0);
  });

  test('checks every part, counts, and leaves no trace', async () => {
    const { code, lines, about } = await report();
    assert.equal(code, 0, lines.join('\n'));
    const subjects = [
      'Node',
      'SQLite',
      'data directory',
      'disk space',
      'API port',
      'data port',
      'clock',
      'open files',
    ];
    for (const subject of [
      ...subjects,
      'QEMU',
      'KVM',
      'guest image',
      'memory',
      'guest limits',
      'PostgreSQL',
      'MySQL/MariaDB',
    ]) {
      assert.match(about(subject), /^(?:ok {2}|warn|fail) {2}/, subject);
    }
    for (const line of lines.slice(0, -1)) {
      if (!line.startsWith('ok')) assert.match(line, /\. Fix: \S/, line);
    }
    assert.match(lines.at(-1) ?? '', /^0 failed, \d+ warnings?, \d+ ok$/);
    assert.match(about('SQLite'), /3\.\d+\.\d+$/);
    assert.deepEqual(
      readdirSync(dataDir).filter((name) => name.startsWith('.doctor')),
      [],
    );
  });

  test('a data directory that does not exist yet is fine and is not made', async () => {
    const path = join(dataDir, 'later', 'data');
    const { code, about } = await report({ CLOUDLET_DATA_DIR: path });
    assert.equal(code, 0);
    assert.match(about('data directory'), /^ok .*will be created at the first start/);
    assert.ok(!existsSync(join(dataDir, 'later')));
  });

  test('a data directory that cannot be written fails, with the fix', async () => {
    const { code, about } = await report({ CLOUDLET_DATA_DIR: '/proc/cloudlet' });
    assert.equal(code, 1);
    assert.match(about('data directory'), /^fail .*\/proc is not writable .*Fix: chown/);
  });

  test('a port that another program took fails, with the fix', async () => {
    await listening({}, async (port) => {
      const { code, about } = await report({ CLOUDLET_PORT: port });
      assert.equal(code, 1);
      assert.match(
        about('API port'),
        new RegExp(`^fail .*:${port} is in use by another program.*CLOUDLET_PORT`),
      );
      assert.match(about('data port'), /^ok/);
    });
  });

  test('the port of the Cloudlet that uses this data directory is fine', async () => {
    await listening({ 'x-request-id': 'req-1' }, async (port) => {
      const lock = lockDirectory(dataDir);
      const { code, about } = await report({ CLOUDLET_PORT: port });
      lock.release();
      assert.equal(code, 0);
      assert.match(about('API port'), /^ok .*in use by the running Cloudlet/);
      assert.match(about('data directory'), /in use by a running Cloudlet/);
      const other = await report({ CLOUDLET_PORT: port });
      assert.match(other.about('API port'), /^fail/, 'it belongs to a Cloudlet with other data');
    });
  });

  test('an address that is not of this machine fails', async () => {
    const { code, about } = await report({ CLOUDLET_HOST: '192.0.2.1', CLOUDLET_PORT: '8080' });
    assert.equal(code, 1);
    assert.match(about('API port'), /^fail .*Fix: set CLOUDLET_HOST/);
  });

  test('a data directory of another user fails for root, one that others may move is a warning', {
    skip: noGuestUsers,
  }, async () => {
    const CLOUDLET_DATA_DIR = join(dataDir, 'data');
    mkdirSync(CLOUDLET_DATA_DIR);
    const about = async () => (await report({ CLOUDLET_DATA_DIR })).about('data directory');
    chownSync(CLOUDLET_DATA_DIR, 4711, 4711);
    assert.match(await about(), /^fail .* belongs to another user \(uid 4711\)\. Fix: chown root /);
    chownSync(CLOUDLET_DATA_DIR, 0, 0);
    chmodSync(dataDir, 0o777);
    assert.match(await about(), /^warn .* every user of this host .*Fix: chmod o-w /);
    chmodSync(dataDir, 0o700);
    assert.match(await about(), /^ok /);
  });

  test('ports that others reach without TLS are a warning', async () => {
    const open = { CLOUDLET_HOST: '0.0.0.0' };
    const url = 'https://cloud.example';
    const proxied = { ...open, CLOUDLET_PUBLIC_URL: url, CLOUDLET_DATA_URL: url };
    const about = async (settings: Record<string, string>) => (await report(settings)).about('encryption');
    assert.match(await about({}), /^ok .* only this host/);
    assert.match(await about({ CLOUDLET_HOST: 'localhost' }), /^ok .* only this host/);
    assert.match(
      await about(open),
      /^warn .* without encryption.*Fix: run a reverse proxy with TLS .*CLOUDLET_PUBLIC_URL/,
    );
    assert.match(await about(proxied), /^ok .* proxy with TLS/);
  });

  test('a clock of the wrong year fails, one that jumps is a warning', async () => {
    assert.equal((await checkClock(new FakeClock()))[0]?.level, 'ok');
    assert.equal((await checkClock(new FakeClock(Date.UTC(1970, 0, 2))))[0]?.level, 'fail');
    assert.equal((await checkClock(new FakeClock(Date.UTC(2150, 0, 1))))[0]?.level, 'fail');
    const jumping = new FakeClock();
    const checking = checkClock(jumping as Clock);
    jumping.jump(3_600_000);
    assert.match((await checking)[0]?.detail ?? '', /jumped by 3600000 ms/);
  });

  test('a limit of open files below what the connections need is a warning', async () => {
    const config = loadConfig({ CLOUDLET_MAX_CONNECTIONS: '1000000' });
    const [finding] = await checkDescriptors(config);
    if (process.platform !== 'linux') return;
    assert.equal(finding?.level, 'warn');
    assert.match(finding?.fix ?? '', /ulimit -n 3000000/);
  });

  test("a guest image that could not be built is a warning with the set-up's reason", () => {
    const reason = { reason: 'apt-get was not found', fix: 'copy the folder build/guest' };
    writeFileSync(join(dataDir, 'problem.json'), JSON.stringify(reason));
    const [missing] = checkTinyImage(dataDir);
    assert.equal(missing?.level, 'warn');
    assert.match(missing?.detail ?? '', /has not been built: apt-get was not found$/);
    assert.equal(missing?.fix, 'copy the folder build/guest');
    for (const name of ['tiny-kernel', 'tiny-initrd']) writeFileSync(join(dataDir, name), '');
    assert.equal(checkTinyImage(dataDir)[0]?.level, 'ok');
  });

  test('memory: too little for a machine is a warning with the figures', () => {
    const figures = { totalBytes: 960 * 2 ** 20, availableBytes: 480 * 2 ** 20, isLimited: false };
    const [enough] = checkMemory(figures);
    assert.deepEqual([enough?.level, enough?.detail], ['ok', '480 MiB free of 960 MiB']);
    const [little] = checkMemory({ ...figures, availableBytes: 300 * 2 ** 20, isLimited: true });
    assert.equal(little?.level, 'warn');
    assert.match(little?.detail ?? '', /^300 MiB free of 960 MiB .*cgroup.*; 376 MiB are needed to start/);
    assert.match(little?.fix ?? '', /^raise the memory limit/);
  });

  test('machines without users of their own are a warning with the reason', async () => {
    const noUsers = { problem: 'users are shared', fix: 'run it elsewhere' };
    const about = async (settings: Record<string, string>) =>
      (await checkVmNetwork(loadConfig(settings), noUsers))[0];
    const closed = await about({});
    assert.match(closed?.detail ?? '', /^users are shared: .* could reach this host's ports$/);
    assert.deepEqual([closed?.level, closed?.fix], ['warn', 'run it elsewhere']);
    const open = await about({ CLOUDLET_VM_OUTBOUND: 'on' });
    assert.equal(open?.detail, 'users are shared: virtual machines cannot start');
    assert.equal(open?.fix, 'run it elsewhere, or set CLOUDLET_VM_OUTBOUND=off');
  });

  test('a host that promises no more memory than it has is a warning with what is left', () => {
    assert.deepEqual(checkPromises(null), []);
    const [finding] = checkPromises(900 * 2 ** 20);
    assert.equal(finding?.level, 'warn');
    assert.match(finding?.detail ?? '', /^vm\.overcommit_memory=2: .* 900 MiB are left$/);
    assert.equal(finding?.fix, 'sysctl -w vm.overcommit_memory=0');
  });

  test('KVM: missing and not openable are distinguished', async () => {
    const auto = { dataDir, vmAccel: 'auto' } as const;
    const detail = async (...asked: Parameters<typeof checkKvm>) =>
      (await checkKvm(...asked))[0]?.detail ?? '';
    assert.match(
      await detail(auto, false, '/dev/no-such-device'),
      /^this host offers no KVM: virtual machines/,
    );
    assert.match(await detail(auto, false, dataDir), /may not open|cannot be opened \(EISDIR\)/);
    const barred = join(dataDir, 'kvm');
    writeFileSync(barred, '', { mode: 0 });
    const [finding] = await checkKvm(auto, false, barred);
    assert.match(
      finding?.detail ?? '',
      /may not open \S+: it belongs to user \d+ and group \d+, mode 0: virtual/,
    );
    assert.match(finding?.fix ?? '', /^chgrp kvm/);
    assert.match((await checkKvm(auto, true, dataDir))[0]?.detail ?? '', /cannot be opened \(EISDIR\)/);
    assert.match(await detail({ dataDir, vmAccel: 'tcg' }, false), /disabled by CLOUDLET_VM_ACCEL/);
  });

  test('KVM: what the test boot found is shown with its time, and not before it is known', async () => {
    const auto = { dataDir, vmAccel: 'auto' } as const;
    const ask = async (device = join(dataDir, 'no-kvm')) => (await checkKvm(auto, false, device))[0];
    assert.match(
      (await ask('/dev/null'))?.detail ?? '',
      /no guest has been booted with it yet; Cloudlet tests KVM at its next start/,
    );
    const program = await new QemuPrograms().system();
    if (program === null) return;
    const clock = new FakeClock(Date.UTC(2026, 5, 1, 12));
    mkdirSync(join(dataDir, 'vms'));
    const deps = { directory: join(dataDir, 'vms'), clock, uid: null, device: join(dataDir, 'no-kvm') };
    const probe = new AccelProbe(deps);
    probe.current(program);
    await probe.whenIdle();
    const found = await ask();
    assert.match(found?.detail ?? '', /^this host offers no KVM: .* \(tested 2026-06-01T12:00:00\.000Z\)$/);
    assert.ok(found?.fix);
    const cache = join(deps.directory, 'accel-probe.json');
    const kept = JSON.parse(readFileSync(cache, 'utf8'));
    writeFileSync(cache, JSON.stringify({ ...kept, accel: 'kvm', reason: '' }));
    assert.match((await ask())?.detail ?? '', /^virtual machines use KVM \(tested/);
    writeFileSync(cache, JSON.stringify({ ...kept, key: 'of another boot' }));
    assert.match((await ask())?.detail ?? '', /^this host offers no KVM/);
  });
});
