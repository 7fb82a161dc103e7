/** A machine's row as its owner sees it. */
import { formatTime, formatTimeOrNull } from '../clock.ts';
import type { Vm } from './schema.ts';
import type { VmRow } from './store.ts';

const MICRO = 1_000_000;

/** Credits an hour. */
export function priceOf(micro: number): number {
  return micro / MICRO;
}

/** `now` is ms since 1970. */
export function presentVm(row: Omit<VmRow, 'id'>, now: number): Vm {
  const started = row.started_at;
  return {
    vm_id: row.vm_id,
    name: row.name,
    ip_address: row.address,
    instance_type: row.instance_type,
    region: row.region,
    tags: row.tags,
    image: row.image_id,
    state: row.state,
    state_reason:
      row.reason_code === null ? null : { code: row.reason_code, message: row.reason_message ?? '' },
    vcpus: row.vcpus,
    memory_mb: row.memory_mb,
    disk_gb: row.disk_gb,
    price_per_hour: priceOf(row.price_micro),
    ports: JSON.parse(row.ports) as number[],
    outbound: row.outbound === 1,
    accel: row.accel,
    accel_reason: row.accel_reason,
    created_at: formatTime(row.created_at),
    started_at: formatTimeOrNull(started),
    ready_at: formatTimeOrNull(row.ready_at),
    uptime_seconds: started === null ? 0 : Math.max(0, Math.floor((now - started) / 1000)),
  };
}
