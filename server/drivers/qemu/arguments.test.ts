import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { cases } from '../../testing/cases.ts';
import { type Launch, qemuArguments } from './arguments.ts';

const LAUNCH: Launch = {
  vmId: `vm-${'0'.repeat(26)}`,
  uuid: '00000000-0000-4000-8000-000000000000',
  machine: 'pc-q35-7.2',
  accel: 'tcg',
  vcpus: 2,
  memoryMb: 4096,
  reserve: 'off',
  boot: 'disk',
  diskFormat: 'qcow2',
  mac: '52:54:00:00:00:01',
  outbound: false,
  tap: null,
  privateMac: null,
  isCut: false,
};

/** The value after `name`, for each occurrence. */
function valuesOf(args: readonly string[], name: string): string[] {
  return args.flatMap((word, at) => (word === name ? [args[at + 1] ?? ''] : []));
}

test('a guest is paused at first, sandboxed, and cut off from the outside', () => {
  const args = qemuArguments(LAUNCH);
  for (const word of ['-S', '-nodefaults', '-no-user-config']) assert.ok(args.includes(word), word);
  assert.deepEqual(valuesOf(args, '-sandbox'), [
    'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny',
  ]);
  assert.deepEqual(valuesOf(args, '-netdev'), ['user,id=net0,ipv6=off,restrict=on']);
  assert.deepEqual(valuesOf(args, '-accel'), ['tcg,thread=multi,tb-size=128']);
  assert.deepEqual(valuesOf(args, '-cpu'), ['max']);
  assert.deepEqual(valuesOf(args, '-kernel'), []);
  assert.equal(valuesOf(args, '-chardev').length, 3);
});

test('kernel boot, KVM, raw disks and outbound connections change only what they should', () => {
  const differing = (changes: Partial<Launch>) => {
    const plain = qemuArguments(LAUNCH);
    return qemuArguments({ ...LAUNCH, ...changes }).filter((word) => !plain.includes(word));
  };
  assert.deepEqual(differing({ accel: 'kvm' }), ['kvm', 'host']);
  const kernel = differing({ boot: 'kernel' });
  assert.equal(kernel[0], 'virtio-blk-pci,id=disk0,drive=disk');
  assert.deepEqual(kernel.slice(1, 5), ['-kernel', 'vmlinuz', '-initrd', 'initrd']);
  assert.match(differing({ outbound: true }).join(' '), /^user,.*restrict=off$/);
  const disk = differing({ diskFormat: 'raw' });
  assert.equal(disk.length, 2);
  assert.ok(disk.every((word) => word.includes('disk.raw') || word.startsWith('driver=raw,')));
});

test('a device of this host replaces the network of QEMU, and no program is started for it', () => {
  assert.deepEqual(valuesOf(qemuArguments({ ...LAUNCH, tap: 'clt600000001' }), '-netdev'), [
    'tap,id=net0,fd=3',
  ]);
  for (const tap of ['', 'eth0', 'clt1,script=x', 'clt12345678901']) {
    assert.throws(() => qemuArguments({ ...LAUNCH, tap }), tap);
  }
});

test('the private device comes after all others, and has a socket in the folder of the guest', () => {
  const without = qemuArguments(LAUNCH);
  const own = qemuArguments({ ...LAUNCH, privateMac: '56:54:00:00:00:01' });
  assert.deepEqual(own.slice(0, without.length), without);
  assert.deepEqual(own.slice(without.length), [
    ...['-netdev', 'stream,id=net1,server=on,addr.type=unix,addr.path=network.sock'],
    ...['-device', 'virtio-net-pci,netdev=net1,mac=56:54:00:00:00:01,romfile=,host_mtu=9000'],
  ]);
  assert.throws(() => qemuArguments({ ...LAUNCH, privateMac: '52:54:00:00:00:01' }), /privateMac/);
});

test('every disk says its format, and every socket its path', () => {
  const args = qemuArguments(LAUNCH);
  for (const disk of valuesOf(args, '-blockdev')) assert.match(disk, /^driver=(?:file|raw|qcow2),/);
  assert.ok(!args.join(' ').includes('/'), 'files are named relative to the working directory');
});

test('text of a stranger is never taken, in no option', () => {
  const hostile = fc.oneof(
    fc.string(),
    fc.constantFrom(',script=x', '=', '\n-monitor stdio', '"', 'vm-,', '127.0.0.1,guestfwd=x', '%s'),
  );
  const key = fc.constantFrom(...(Object.keys(LAUNCH) as (keyof Launch)[]));
  fc.assert(
    fc.property(key, hostile, fc.constantFrom('before', 'after', 'instead'), (name, text, where) => {
      fc.pre(text !== '');
      const old = String(LAUNCH[name]);
      const value = where === 'before' ? text + old : where === 'after' ? old + text : text;
      const changed = { ...LAUNCH, [name]: value } as Launch;
      let args: string[];
      try {
        args = qemuArguments(changed);
      } catch {
        return;
      }
      // An accepted value adds no argument, comma, space or line.
      const plain = qemuArguments(LAUNCH);
      const shape = (words: readonly string[]) => words.join(' ').replace(/[^,=\s]/g, '').length;
      const isWord = ['boot', 'accel', 'diskFormat'].includes(name);
      if (!isWord) assert.deepEqual([args.length, shape(args)], [plain.length, shape(plain)]);
    }),
    { numRuns: cases(10_000) },
  );
});
