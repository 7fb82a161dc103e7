/** Changes of machines: name, tags, size. */
import type { Command } from '../command.ts';
import { UsageError } from '../failures.ts';
import { about } from '../resources.ts';
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
];

function gigabytes(text: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new UsageError('--disk must be a whole number of GB, such as 60');
}
