import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { chooseMachine, QemuPrograms, versionedMachines } from './program.ts';

test('the newest versioned q35 is chosen, by number', () => {
  const help = 'q35  alias of pc-q35-10.0\npc-q35-9.2   x\npc-q35-10.0  x\npc-i440fx-11.0 x\npc-q35-2.4 x\n';
  assert.deepEqual(versionedMachines(help), ['pc-q35-10.0', 'pc-q35-9.2', 'pc-q35-2.4']);
  const rhel =
    'q35 x (alias of pc-q35-rhel9.4.0)\npc-q35-rhel9.4.0 x\npc-q35-rhel9.10.0 x\npc-q35-rhel8.6.0 x\n';
  assert.deepEqual(versionedMachines(rhel), ['pc-q35-rhel9.10.0', 'pc-q35-rhel9.4.0', 'pc-q35-rhel8.6.0']);
  assert.deepEqual(versionedMachines('none   empty machine\n'), []);
});

test('a guest stays what it was, as long as QEMU knows it', () => {
  const machines = ['pc-q35-9.2', 'pc-q35-7.2'];
  const program = { path: '/qemu', version: '9.2', machine: 'pc-q35-9.2', machines };
  assert.equal(chooseMachine('pc-q35-7.2', program), 'pc-q35-7.2');
  assert.equal(chooseMachine('pc-q35-2.4', program), 'pc-q35-9.2');
  assert.equal(chooseMachine(undefined, program), 'pc-q35-9.2');
});

describe('which QEMU is taken', () => {
  let root: string;
  const folder = (name: string) => join(root, name);
  const programs = () => new QemuPrograms([folder('first'), folder('second')]);
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'cloudlet-qemu-'));
    for (const name of ['first', 'second']) mkdirSync(folder(name));
  });
  afterEach(() => rmSync(root, { recursive: true }));

  /** A script that answers like QEMU when asked for its version and devices, and does nothing else. */
  function install(path: string, version: string, machines = 'pc-q35-6.1 x'): void {
    const script = `#!/bin/sh
case $1 in
--version) echo 'QEMU emulator version ${version} (of a test)' ;;
*) printf '%s\\n' '${machines}' ;;
esac
`;
    writeFileSync(join(root, path), script, { mode: 0o755 });
  }

  test('none, and one that may not be run: it is not installed', async () => {
    writeFileSync(join(root, 'first/qemu-system-x86_64'), '', { mode: 0o644 });
    const found = await programs().detect();
    assert.ok('problem' in found);
    assert.match(found.problem, /is not installed on this host$/);
    assert.match(found.fix, /apt-get install qemu-system-x86 .*dnf install qemu-kvm/);
    assert.equal(await programs().image(), null);
  });

  test('one that is too old is named with its version, until a newer one is on the PATH', async () => {
    install('first/qemu-system-x86_64', '5.2.0', 'pc-q35-5.2 x');
    const both = programs();
    const old = await both.detect();
    assert.ok('problem' in old);
    assert.match(old.problem, /^QEMU 5\.2\.0 of this host is too old: .* need QEMU 6\.1 or newer$/);
    assert.match(old.fix, /newer QEMU on the PATH.*Debian 12/);
    assert.equal(await both.system(), null);
    install('first/qemu-system-x86_64', '6.0.50', 'pc-q35-6.0 x');
    assert.equal(await both.system(), null);
    install('second/qemu-system-x86_64', '6.1.0');
    assert.equal((await both.system())?.path, folder('second/qemu-system-x86_64'));
    install('first/qemu-system-x86_64', '10.0.2', 'pc-q35-10.0 x');
    assert.equal((await both.system())?.machine, 'pc-q35-10.0');
  });

  test("RHEL's, with its name and machines", async () => {
    install('second/qemu-kvm', '9.0.0', 'pc-i440fx-rhel7.6.0 x\npc-q35-rhel9.4.0 x');
    const found = await programs().system();
    assert.deepEqual([found?.path, found?.machine], [folder('second/qemu-kvm'), 'pc-q35-rhel9.4.0']);
  });

  test('one that does not run, and one without q35, are distinguished', async () => {
    writeFileSync(join(root, 'first/qemu-system-x86_64'), '#!/bin/sh\nexit 127\n', { mode: 0o755 });
    assert.match(
      JSON.stringify(await programs().detect()),
      /does not run.*qemu-system-x86_64 --version shows/,
    );
    install('first/qemu-system-x86_64', '7.2.0', 'microvm x');
    assert.match(
      JSON.stringify(await programs().detect()),
      /QEMU 7\.2\.0 of this host has no machine type q35/,
    );
  });
});
