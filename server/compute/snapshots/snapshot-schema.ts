/** Public schemas of snapshots of machines. */
import { namedObject, type Static, Type } from '../../platform/json/json-schema.ts';

export const VmSnapshot = namedObject('VmSnapshot', {
  snapshot_id: Type.String(),
  name: Type.String(),
  size: Type.Integer({ description: 'Bytes on the host; charged like the disk, as whole GB' }),
  available: Type.Boolean({
    description:
      'false: only the record of the snapshot exists, as after a restore of the whole cloud; it can be deleted',
  }),
  created_at: Type.String(),
});
export type VmSnapshot = Static<typeof VmSnapshot>;

export const NewVmSnapshot = namedObject('NewVmSnapshot', {
  name: Type.String({ description: '1 to 128 visible characters' }),
});
export type NewVmSnapshot = Static<typeof NewVmSnapshot>;

export const DeletedVmSnapshot = namedObject('DeletedVmSnapshot', {
  snapshot_id: Type.String(),
  deleted: Type.Literal(true),
});
export type DeletedVmSnapshot = Static<typeof DeletedVmSnapshot>;

export const SnapshotPath = Type.Object({
  vm_id: Type.String({ $id: 'VmId' }),
  snapshot_id: Type.String({ $id: 'SnapshotId' }),
});
