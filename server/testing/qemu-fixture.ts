/** A QemuHypervisor over its own directory, for tests. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { notInstalled } from '../../scripts/installed.ts';
import type { GuestSpec } from '../compute/hypervisor.ts';
import { FILES } from '../drivers/qemu/arguments.ts';
import type { QemuDeps } from '../drivers/qemu/qemu-deps.ts';
import { QemuHypervisor } from '../drivers/qemu/qemu-hypervisor.ts';
import { systemClock } from '../platform/clock.ts';
import { newId, newMac } from '../platform/ids.ts';
import type { HypervisorFixture } from './hypervisor.conformance.ts';
import { noUsers, testUidBase } from './own-ground.ts';
import { testGuestDisk, testUuid } from './test-guest.ts';

/** Why real guests cannot be tested here, or false. */
export const noQemu = notInstalled('qemu-system-x86_64', 'qemu-img');

export interface QemuFixture extends HypervisorFixture {
  open(changes?: Partial<QemuDeps>): QemuHypervisor;
  readonly deps: QemuDeps;
}

export function buildQemuFixture(): QemuFixture {
  const root = mkdtempSync(join(tmpdir(), 'cloudlet-qemu-'));
  const deps: QemuDeps = {
    vmsDirectory: join(root, 'vms'),
    imagesDirectory: root,
    tiny: { kernel: join(root, 'no-kernel'), initrd: join(root, 'no-initrd') },
    clock: systemClock,
    uidBase: testUidBase(),
    noUsers,
    accel: 'tcg',
    memoryOvercommit: 1.5,
    outbound: null,
    bridge: null,
  };
  writeFileSync(join(root, 'img-test.raw'), testGuestDisk());
  writeFileSync(join(root, 'img-deaf.raw'), testGuestDisk(true));
  return {
    deps,
    open: (changes = {}) => new QemuHypervisor({ ...deps, ...changes }),
    newSpec: (kind) => testSpec(kind === 'deaf' ? 'img-deaf' : 'img-test'),
    diskBytes: async ({ vmId }) => {
      const disk = join(root, 'vms', vmId, 'guest', FILES.qcow2Disk);
      const info = execFileSync('qemu-img', ['info', '-U', '--output=json', disk]);
      return JSON.parse(info.toString())['virtual-size'];
    },
    imageBytes: () => testGuestDisk(),
    remove: async () => rmSync(root, { recursive: true, force: true }),
  };
}

export function testSpec(imageId: string): GuestSpec {
  return {
    vmId: newId('vm', systemClock),
    uuid: testUuid(),
    hostname: 'test',
    vcpus: 1,
    memoryMb: 64,
    diskGb: 30,
    image: { imageId, boot: imageId === 'tiny' ? 'kernel' : 'disk', format: 'raw' },
    sshKeys: [],
    userData: null,
    network: { mac: newMac(), ports: [22, 80, 20_022], outbound: false, address: null },
  };
}
