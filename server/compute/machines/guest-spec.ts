/** What an engine is told of a machine. */
import type { GuestNetwork, GuestSpec } from '../hypervisor.ts';
import { guestImage } from '../images/images.ts';
import { hostnameOf } from '../vm-names.ts';
import type { VmRow } from './vm-store.ts';

export function guestSpec(row: Omit<VmRow, 'id'>): GuestSpec {
  return {
    vmId: row.vm_id,
    uuid: row.uuid,
    hostname: hostnameOf(row.name, row.vm_id),
    vcpus: row.vcpus,
    memoryMb: row.memory_mb,
    diskGb: row.disk_gb,
    image: guestImage(row.image_id),
    sshKeys: JSON.parse(row.ssh_keys) as string[],
    userData: row.user_data,
    network: guestNetwork(row),
  };
}

export function guestNetwork(row: Pick<VmRow, 'mac' | 'ports' | 'outbound' | 'address'>): GuestNetwork {
  const { mac, address } = row;
  return { mac, address, ports: JSON.parse(row.ports) as number[], outbound: row.outbound === 1 };
}
