/** Snapshots of machines over REST. */
import { defineRoute, type Route } from '../../http/route.ts';
import { Type } from '../../platform/json/json-schema.ts';
import { Vm, VmPath } from '../schema.ts';
import { DeletedVmSnapshot, NewVmSnapshot, SnapshotPath, VmSnapshot } from './snapshot-schema.ts';
import type { Snapshots } from './snapshots.ts';

export interface SnapshotRoutesDeps {
  readonly snapshots: Snapshots;
}

const SNAPSHOTS = '/api/vms/{vm_id}/snapshots';
const SNAPSHOT = `${SNAPSHOTS}/{snapshot_id}`;

export function snapshotRoutes({ snapshots }: SnapshotRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: SNAPSHOTS,
      name: 'createVmSnapshot',
      audit: { detail: ['name'] },
      livesOn: 'host',
      tag: 'compute',
      summary: 'Take a snapshot of the disk of a stopped virtual machine',
      description:
        'A virtual machine has at most 10 snapshots, which are deleted with it. Snapshots are stored on the same host; recovery points do not ' +
        'contain them. Each snapshot is charged like the disk, rounded up to whole GB.',
      permission: 'compute:write',
      params: VmPath,
      body: NewVmSnapshot,
      responses: { 201: VmSnapshot },
      errors: [
        ...(['vm_not_found', 'vm_not_stopped', 'quota_exceeded', 'insufficient_credits'] as const),
        ...(['engine_unavailable', 'disk_missing', 'out_of_space', 'read_only'] as const),
      ],
      handler: (call) => snapshots.create(call, call.params.vm_id, call.body),
    }),
    defineRoute({
      method: 'GET',
      path: SNAPSHOTS,
      name: 'listVmSnapshots',
      livesOn: 'host',
      tag: 'compute',
      summary: 'List the snapshots of a virtual machine, oldest first',
      permission: 'compute:read',
      params: VmPath,
      responses: { 200: Type.Array(VmSnapshot) },
      errors: ['vm_not_found'],
      handler: (call) => snapshots.list(call, call.params.vm_id),
    }),
    defineRoute({
      method: 'POST',
      path: `${SNAPSHOT}/restore`,
      name: 'restoreVmSnapshot',
      livesOn: 'host',
      tag: 'compute',
      summary: 'Restore the disk of a stopped virtual machine from a snapshot',
      description:
        'Later changes to the disk are lost. The instance type stays, and so does the size of the disk.',
      permission: 'compute:write',
      params: SnapshotPath,
      responses: { 200: Vm },
      errors: [
        ...(['vm_not_found', 'snapshot_not_found', 'vm_not_stopped'] as const),
        ...(['engine_unavailable', 'disk_missing', 'out_of_space', 'read_only'] as const),
      ],
      handler: (call) => snapshots.restore(call, call.params.vm_id, call.params.snapshot_id),
    }),
    defineRoute({
      method: 'DELETE',
      path: SNAPSHOT,
      name: 'deleteVmSnapshot',
      livesOn: 'host',
      tag: 'compute',
      summary: 'Delete a snapshot of a virtual machine',
      permission: 'compute:write',
      params: SnapshotPath,
      responses: { 200: DeletedVmSnapshot },
      errors: ['vm_not_found', 'snapshot_not_found', 'engine_unavailable'],
      handler: (call) => snapshots.remove(call, call.params.vm_id, call.params.snapshot_id),
    }),
  ];
}
