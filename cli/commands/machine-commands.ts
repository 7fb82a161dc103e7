/** Changes of machines: name, tags, size; and their snapshots. */
import type { Cloud } from '../../sdk/index.ts';
import type { Command } from '../command.ts';
import { UsageError } from '../failures.ts';
import { sizeText } from '../output.ts';
import { about, assertMeant, find, YES } from '../resources.ts';
import { findVm } from './resource-commands.ts';

export const MACHINE_COMMANDS: readonly Command[] = [
  {
    name: 'vm change',
    words: 'VM',
    summary: 'rename a machine, set its tags, or resize it while it is stopped',
    options: {
      name: { value: 'NAME', summary: 'new name' },
      tags: { value: 'TAGS', summary: 'tags, separated by commas; "" removes them' },
      type: { value: 'TYPE', summary: 'new instance type (see cloudlet vm types); the disk stays as it is' },
      disk: { value: 'GB', summary: 'larger disk; a disk never shrinks' },
    },
    run: about(findVm, async ({ vm_id }, { cloud, output, options }) => {
      const [name, tags, type, disk] = ['name', 'tags', 'type', 'disk'].map((one) => options.text(one));
      const change = {
        ...(name !== undefined && { name }),
        ...(tags !== undefined && { tags }),
        ...(type !== undefined && { instance_type: type }),
        ...(disk !== undefined && { disk_gb: gigabytes(disk) }),
      };
      if (Object.keys(change).length === 0) throw new UsageError('give --name, --tags, --type or --disk');
      const vm = await cloud.changeVm(vm_id, change);
      output.one(vm, () => [`${vm.name} is ${vm.state}: ${vm.instance_type}, disk ${vm.disk_gb} GB`]);
    }),
  },
  {
    name: 'vm rebuild',
    words: 'VM',
    summary:
      'replace the disk of a stopped machine with a new one from an image; all data on the old disk is lost',
    options: {
      image: { value: 'IMAGE', summary: 'default: the image of the machine (see cloudlet vm images)' },
      ...YES,
    },
    run: about(findVm, async ({ vm_id, name, disk_gb }, { cloud, output, options, ...call }) => {
      const image = options.text('image');
      const wanted = { cloud, output, options, ...call };
      await assertMeant(wanted, `Delete all data on the disk of ${name} (${disk_gb} GB)?`);
      const vm = await cloud.rebuildVm(vm_id, image === undefined ? {} : { image });
      output.one(vm, () => [`${name} has a new disk from ${vm.image}; cloudlet vm start ${name} starts it`]);
    }),
  },
  {
    name: 'vm snapshots',
    words: 'VM',
    summary: 'list the snapshots of a machine',
    run: about(findVm, async ({ vm_id }, { cloud, output }) => {
      const snapshots = await cloud.listVmSnapshots(vm_id);
      output.table(
        snapshots,
        ['NAME', 'SIZE', 'CREATED', 'ID'],
        ({ name, size, created_at, snapshot_id }) => {
          return [name, sizeText(size), created_at, snapshot_id];
        },
      );
    }),
  },
  {
    name: 'vm snapshot',
    words: 'VM NAME',
    summary: 'take a snapshot of the disk of a stopped machine',
    run: about(findVm, async ({ vm_id, name }, { cloud, output, words: [, as = ''] }) => {
      const made = await cloud.createVmSnapshot(vm_id, { name: as }, { takesLong: true });
      output.one(made, () => [`snapshot ${as} of ${name} created (${sizeText(made.size)})`]);
    }),
  },
  {
    name: 'vm revert',
    words: 'VM SNAPSHOT',
    summary: 'restore the disk of a stopped machine from a snapshot; later changes are lost',
    options: YES,
    run: about(findVm, async ({ vm_id, name }, { cloud, output, ...call }) => {
      const snapshot = await findSnapshot(cloud, vm_id, call.words[1] ?? '');
      await assertMeant({ ...call, output }, `Restore the disk of ${name} from ${snapshot.name}?`);
      const vm = await cloud.restoreVmSnapshot(vm_id, snapshot.snapshot_id, { takesLong: true });
      output.one(vm, () => [`the disk of ${name} was restored from ${snapshot.name}`]);
    }),
  },
  {
    name: 'vm snapshot-rm',
    words: 'VM SNAPSHOT',
    summary: 'delete a snapshot of a machine',
    options: YES,
    run: about(findVm, async ({ vm_id }, { cloud, output, ...call }) => {
      const snapshot = await findSnapshot(cloud, vm_id, call.words[1] ?? '');
      await assertMeant({ ...call, output }, `Delete the snapshot ${snapshot.name}?`);
      const deleted = await cloud.deleteVmSnapshot(vm_id, snapshot.snapshot_id);
      output.one(deleted, () => [`${snapshot.name} is deleted`]);
    }),
  },
];

const findSnapshot = async (cloud: Cloud, vmId: string, word: string) =>
  find(
    await cloud.listVmSnapshots(vmId),
    { noun: 'snapshot', listedBy: 'vm snapshots', namesOf: ({ snapshot_id, name }) => [snapshot_id, name] },
    word,
  );

function gigabytes(text: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new UsageError('--disk must be a whole number of GB, such as 60');
}
