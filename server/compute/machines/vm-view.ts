/** The public view of a machine's row. */
import { type Clock, formatTime, formatTimeOrNull } from '../../platform/clock.ts';
import { reasonOf } from '../../resources/row-change.ts';
import type { Hypervisor } from '../hypervisor.ts';
import type { Ingress, PortState } from '../ingress.ts';
import type { Vm } from '../schema.ts';
import { hostnameOf, privateLinkOf } from './runs.ts';
import type { VmBilling } from './vm-billing.ts';
import { billedDisk, type VmRow } from './vm-store.ts';

const SSH = 22;
/** Hours of an average month, the usual base of monthly prices. */
const HOURS_PER_MONTH = 730;

type Priced = Pick<VmRow, 'instance_type' | 'disk_gb'>;

/** Current prices of a machine in this plan. */
export function pricesOf(billing: VmPricing, plan: string, vm: Priced) {
  const price = billing.pricePerHour(plan, vm.instance_type);
  const disk = billing.diskPricePerHour(plan, vm);
  const total = rounded(price + disk, 1e9);
  return {
    price_per_hour: price,
    price_per_month: rounded(price * HOURS_PER_MONTH, 1e6),
    disk_price_per_hour: disk,
    total_price_per_hour: total,
    total_price_per_month: rounded(total * HOURS_PER_MONTH, 1e6),
  };
}

/** Rounded to 1/`parts`: doubles add and multiply with errors beyond that. */
function rounded(credits: number, parts: number): number {
  return Math.round(credits * parts) / parts;
}

/** Paused machines are still charged: they hold their memory and resume without a boot. */
const WAITS = {
  code: 'disk_full',
  message:
    "Paused: the host's disk is nearly full, or is filling up while your machines and snapshots use more than your share. " +
    'The machine resumes automatically when space is free. To free space, delete snapshots or machines.',
};

type VmPricing = Pick<VmBilling, 'pricePerHour' | 'diskPricePerHour'>;

export interface VmViewsDeps {
  readonly clock: Clock;
  readonly billing: VmPricing;
  readonly hypervisor: Pick<Hypervisor, 'waiting'>;
  readonly ingress: Pick<Ingress, 'ports'>;
  /** Whether machines created with this setting may open outbound connections; false: no machine may. */
  readonly outbound: boolean;
}

export class VmViews {
  readonly #deps: VmViewsDeps;

  constructor(deps: VmViewsDeps) {
    this.#deps = deps;
  }

  present(row: Omit<VmRow, 'id'>): Vm {
    const { clock, billing, hypervisor, ingress, outbound } = this.#deps;
    const vm = { ...presentVm(row, clock.now()), ...pricesOf(billing, row.plan, billedDisk(row)) };
    const isWaiting = row.state === 'running' && hypervisor.waiting(row.vm_id) !== null;
    const state_reason = isWaiting ? WAITS : vm.state_reason;
    const ports = ingress.ports(row.vm_id, JSON.parse(row.ports) as number[]);
    return {
      ...vm,
      state_reason,
      ports: ports.map(({ port, guestPort, reason }) => ({
        port,
        guest_port: guestPort,
        open: reason === null,
        reason,
      })),
      ssh_command: sshCommand(row.address, ports),
      outbound: vm.outbound && outbound,
    };
  }
}

/** Uses the first port that leads to the guest's SSH server; null: none does now. */
function sshCommand(address: string | null, ports: readonly PortState[]): string | null {
  const open = ports.find(({ guestPort, reason }) => guestPort === SSH && reason === null);
  if (address === null || open === undefined) return null;
  return open.port === SSH ? `ssh root@${address}` : `ssh -p ${open.port} root@${address}`;
}

function presentVm(row: Omit<VmRow, 'id'>, now: number) {
  const started = row.started_at;
  return {
    vm_id: row.vm_id,
    name: row.name,
    ip_address: row.address,
    internal_name: `${hostnameOf(row.name, row.vm_id)}.internal`,
    private_ip: privateLinkOf(row)?.address.split('/', 1)[0] ?? null,
    instance_type: row.instance_type,
    region: row.region,
    tags: row.tags,
    image: row.image_id,
    state: row.state,
    state_reason: reasonOf(row),
    vcpus: row.vcpus,
    memory_mb: row.memory_mb,
    disk_gb: row.disk_gb,
    outbound: row.outbound === 1,
    accel: row.accel,
    accel_reason: row.accel_reason,
    created_at: formatTime(row.created_at),
    started_at: formatTimeOrNull(started),
    ready_at: formatTimeOrNull(row.ready_at),
    uptime_seconds: started === null ? 0 : Math.max(0, Math.floor((now - started) / 1000)),
  };
}
