/** Changes of machines over REST. */
import { defineRoute, type Route } from '../../http/route.ts';
import { assertVmFields } from '../machines/vm-fields.ts';
import { Vm, VmChange, VmPath, VmRebuild } from '../schema.ts';
import type { MachineChanges } from './machine-changes.ts';
import type { MachineRebuilds } from './machine-rebuilds.ts';

export interface ChangeRoutesDeps {
  readonly machineChanges: MachineChanges;
  readonly machineRebuilds: MachineRebuilds;
}

export function changeRoutes({ machineChanges, machineRebuilds }: ChangeRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'PATCH',
      path: '/api/vms/{vm_id}',
      name: 'changeVm',
      audit: { detail: ['name', 'tags', 'instance_type', 'disk_gb'] },
      livesOn: 'host',
      tag: 'compute',
      summary: 'Rename a virtual machine, set its tags, or resize it while it is stopped',
      description:
        'All given members change together. Another instance type or a larger disk needs a stopped virtual machine; a ' +
        'disk only grows, to at most 1024 GB, and the guest sees it at its next start. The new price applies ' +
        'immediately. Renaming also changes `internal_name`.',
      permission: 'compute:write',
      params: VmPath,
      body: VmChange,
      rules: assertVmFields,
      responses: { 200: Vm },
      errors: [
        ...(['vm_not_found', 'vm_not_stopped', 'vm_invalid_state', 'write_conflict'] as const),
        ...(['quota_exceeded', 'insufficient_credits', 'out_of_space', 'read_only'] as const),
      ],
      handler: (call) => machineChanges.change(call, call.params.vm_id, call.body),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/vms/{vm_id}/rebuild',
      name: 'rebuildVm',
      audit: { detail: ['image'] },
      livesOn: 'host',
      tag: 'compute',
      summary: 'Replace the disk of a stopped virtual machine with a new one from an image',
      description:
        'All data on the disk is lost. Id, name, address, SSH keys, user data, instance type and the size of the ' +
        'disk stay, and the next start is its first with the new disk. A virtual machine with snapshots is refused.',
      permission: 'compute:write',
      params: VmPath,
      body: VmRebuild,
      responses: { 200: Vm },
      errors: [
        ...(['vm_not_found', 'vm_not_stopped', 'vm_invalid_state', 'write_conflict'] as const),
        ...(['image_not_found', 'image_not_ready', 'out_of_space', 'read_only'] as const),
      ],
      handler: (call) => machineRebuilds.rebuild(call, call.params.vm_id, call.body),
    }),
  ];
}
