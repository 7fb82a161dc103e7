/** Machines over REST, for owners and for administrators. */
import { listPage, Paging, rowIdCursor } from '../../http/list-page.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { Listed } from '../../metadata/list.ts';
import { Type } from '../../platform/json/json-schema.ts';
import type { Hypervisor } from '../hypervisor.ts';
import { INSTANCE_TYPES, whyTooLarge } from '../instance-types.ts';
import {
  AdminVm,
  AdminVmsQuery,
  DeletedVm,
  InstanceTypeEntry,
  LentKey,
  NewLentKey,
  NewVm,
  StopQuery,
  Vm,
  VmPath,
  VmPoint,
} from '../schema.ts';
import type { LentKeys } from './lent-keys.ts';
import type { MachineOrigins } from './machine-origins.ts';
import type { ListedVm, Machines } from './machines.ts';
import type { PowerControl } from './power-control.ts';
import { STOPPED_BY_ADMINISTRATOR } from './transitions.ts';
import type { VmBilling } from './vm-billing.ts';
import type { VmDeleter } from './vm-deleter.ts';
import { assertVmFields } from './vm-fields.ts';
import { pricesOf } from './vm-view.ts';

export interface VmRoutesDeps {
  readonly machines: Machines;
  readonly origins: MachineOrigins;
  readonly power: PowerControl;
  readonly deleter: VmDeleter;
  readonly lentKeys: LentKeys;
  readonly hypervisor: Pick<Hypervisor, 'memoryForGuestsMb'>;
  readonly billing: Pick<VmBilling, 'planOf' | 'pricePerHour' | 'diskPricePerHour'>;
}

const VM = '/api/vms/{vm_id}';

/** undefined: the default grace period. */
function graceMsOf({ force, grace }: StopQuery): number | undefined {
  if (force === true) return 0;
  return grace === undefined ? undefined : grace * 1000;
}

export function vmRoutes(deps: VmRoutesDeps): Route[] {
  const changing = [...changeRoutes(deps), lendRoute(deps)];
  return [...catalogueRoutes(deps), ...findRoutes(deps), pointsRoute(deps), ...changing];
}

function catalogueRoutes({ billing, hypervisor }: VmRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/instance-types',
      name: 'listInstanceTypes',
      livesOn: 'host-or-any',
      tag: 'compute',
      summary: 'List the instance types and their prices',
      description: 'With an API key, the prices of the plan of the account; otherwise the default prices.',
      permission: 'public',
      knowsCaller: true,
      responses: { 200: Type.Array(InstanceTypeEntry) },
      handler: async ({ principal }) => {
        const plan = await billing.planOf(principal.accountId);
        const availableMb = hypervisor.memoryForGuestsMb();
        return INSTANCE_TYPES.map(({ name, vcpus, memoryMb, diskGb }) => {
          const type = { instance_type: name, vcpus, memory_mb: memoryMb, disk_gb: diskGb };
          const reason = whyTooLarge(memoryMb, availableMb);
          return { ...type, ...pricesOf(billing, plan, type), startable: reason === null, reason };
        });
      },
    }),
  ];
}

/** 64 KiB of user data as JSON may escape them, and some keys. */
const MAX_BODY_BYTES = 256 * 1024;

function findRoutes({ machines }: VmRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/vms',
      name: 'createVm',
      audit: { detail: ['name', 'instance_type', 'image_id'] },
      livesOn: 'host',
      tag: 'compute',
      summary: 'Create a virtual machine',
      description:
        'Creates the disk and the address. The virtual machine is not started. With `from`, the disk is copied from a ' +
        'virtual machine in a recovery point: the instance type is the same or has a disk of that size, the image is ' +
        'the same, and so are the SSH keys unless others are given.',
      permission: 'compute:write',
      body: NewVm,
      maxBodyBytes: MAX_BODY_BYTES,
      rules: assertVmFields,
      responses: { 201: Vm },
      errors: [
        ...(['image_not_found', 'image_not_ready', 'insufficient_credits', 'quota_exceeded'] as const),
        ...(['no_free_address', 'engine_unavailable', 'insufficient_capacity'] as const),
        ...(['point_not_found', 'data_corrupted', 'target_unavailable'] as const),
      ],
      handler: (call) => machines.create(call, call.body),
    }),
    defineRoute({
      method: 'GET',
      path: '/api/vms',
      name: 'listVms',
      livesOn: 'host-or-any',
      tag: 'compute',
      summary: 'List your virtual machines, oldest first',
      permission: 'compute:read',
      query: Type.Object(Paging),
      responses: { 200: Type.Array(Vm) },
      errors: ['invalid_cursor'],
      produces: 'list',
      handler: ({ principal, query, request }) => {
        const { limit, cursor } = query;
        const after = rowIdCursor(cursor);
        const page = { after, limit: limit === undefined ? Infinity : limit + 1 };
        const entries = machines.list(principal.accountId, page);
        return listPage({ request, limit, entries, cursorOf: (vm) => String(vm.id) });
      },
    }),
    defineRoute({
      method: 'GET',
      path: VM,
      name: 'getVm',
      livesOn: 'host-or-any',
      tag: 'compute',
      summary: 'Read a virtual machine',
      permission: 'compute:read',
      params: VmPath,
      responses: { 200: Vm },
      errors: ['vm_not_found'],
      handler: ({ principal, params }) => machines.describe(principal, params.vm_id),
    }),
  ];
}

function changeRoutes({ power, deleter }: VmRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: `${VM}/start`,
      name: 'startVm',
      livesOn: 'host',
      tag: 'compute',
      summary: 'Start a virtual machine',
      description: 'Responds when the vCPUs run. A running virtual machine is not affected.',
      permission: 'compute:write',
      params: VmPath,
      responses: { 200: Vm },
      errors: [
        ...(['vm_not_found', 'vm_invalid_state', 'vm_locked', 'insufficient_credits'] as const),
        'quota_exceeded',
        ...(['write_conflict', 'engine_unavailable', 'insufficient_capacity', 'disk_missing'] as const),
      ],
      handler: (call) => power.start(call, call.params.vm_id),
    }),
    defineRoute({
      method: 'POST',
      path: `${VM}/stop`,
      name: 'stopVm',
      livesOn: 'host',
      tag: 'compute',
      summary: 'Stop a virtual machine',
      description: 'Requests a guest shutdown, and powers off when the grace period has passed.',
      permission: 'compute:write',
      params: VmPath,
      query: StopQuery,
      responses: { 200: Vm },
      errors: ['vm_not_found', 'vm_invalid_state', 'vm_locked', 'write_conflict', 'engine_unavailable'],
      handler: (call) => power.stop(call, call.params.vm_id, { graceMs: graceMsOf(call.query) }),
    }),
    defineRoute({
      method: 'DELETE',
      path: VM,
      name: 'deleteVm',
      livesOn: 'host',
      tag: 'compute',
      summary: 'Delete a stopped virtual machine and its disk',
      permission: 'compute:write',
      params: VmPath,
      responses: { 200: DeletedVm },
      errors: ['vm_not_found', 'vm_not_stopped', 'vm_locked', 'write_conflict', 'engine_unavailable'],
      handler: (call) => deleter.remove(call, call.params.vm_id),
    }),
  ];
}

function lendRoute({ lentKeys }: VmRoutesDeps): Route {
  return defineRoute({
    method: 'POST',
    path: `${VM}/ssh-keys`,
    name: 'lendSshKey',
    livesOn: 'host',
    tag: 'compute',
    summary: 'Allow an SSH key on a virtual machine for two minutes',
    description:
      'For a machine that was created without the key. The key can open connections as root, which stay open after it ' +
      'expires; it expires early if the API key that lent it ends. The built-in image supports lent keys, and so does ' +
      'OpenSSH on images with cloud-init, after a start by this version, unless the guest has the file ' +
      '/etc/cloudlet/no-lent-keys. `cloudlet vm ssh` does this.',
    permission: 'compute:write',
    params: VmPath,
    body: NewLentKey,
    responses: { 200: LentKey },
    errors: ['vm_not_found', 'overloaded'],
    handler: (call) => lentKeys.lend(call, call.params.vm_id, call.body.public_key),
  });
}

const ADMIN_VM = '/api/admin/vms/{vm_id}';

function pointsRoute({ origins }: VmRoutesDeps): Route {
  return defineRoute({
    method: 'GET',
    path: `${VM}/points`,
    name: 'listVmPoints',
    livesOn: 'host',
    tag: 'compute',
    summary: 'List the recovery points that a virtual machine can be restored from, newest first',
    description:
      'All usable recovery points since your account was created, also for a machine that you deleted. `POST ' +
      '/api/vms` with `from` creates a new machine with a disk from one of them.',
    permission: 'compute:read',
    params: VmPath,
    responses: { 200: Type.Array(VmPoint) },
    errors: ['vm_not_found'],
    handler: ({ principal, params }) => origins.list(principal, params.vm_id),
  });
}

export function vmAdminRoutes({ machines, power, deleter }: VmRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/admin/vms',
      name: 'adminListVms',
      livesOn: 'host-or-any',
      tag: 'admin',
      summary: 'List the virtual machines of all accounts, or of one, oldest first',
      permission: 'admin:read',
      query: AdminVmsQuery,
      responses: { 200: Type.Array(AdminVm) },
      errors: ['invalid_cursor'],
      produces: 'list',
      handler: ({ query: { account_id: accountId, limit, cursor }, request }) => {
        const page = { after: rowIdCursor(cursor), limit: limit === undefined ? Infinity : limit + 1 };
        const entries = withOwners(machines.list(accountId ?? 'all', page));
        return listPage({ request, limit, entries, cursorOf: (vm) => String(vm.id) });
      },
    }),
    defineRoute({
      method: 'POST',
      path: `${ADMIN_VM}/stop`,
      name: 'adminStopVm',
      livesOn: 'host',
      tag: 'admin',
      summary: 'Stop a virtual machine of any account',
      permission: 'admin',
      params: VmPath,
      query: StopQuery,
      responses: { 200: Vm },
      errors: ['vm_not_found', 'vm_invalid_state', 'vm_locked', 'write_conflict', 'engine_unavailable'],
      handler: (call) => {
        const request = { graceMs: graceMsOf(call.query), reason: STOPPED_BY_ADMINISTRATOR };
        return power.stop({ ...call, principal: 'administrator' }, call.params.vm_id, request);
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: ADMIN_VM,
      name: 'adminDeleteVm',
      livesOn: 'host',
      tag: 'admin',
      summary: 'Delete a stopped virtual machine of any account, and its disk',
      permission: 'admin',
      params: VmPath,
      responses: { 200: DeletedVm },
      errors: ['vm_not_found', 'vm_not_stopped', 'vm_locked', 'write_conflict', 'engine_unavailable'],
      handler: (call) => deleter.remove({ ...call, principal: 'administrator' }, call.params.vm_id),
    }),
  ];
}

async function* withOwners(vms: AsyncIterable<ListedVm>) {
  for await (const vm of vms) {
    yield new Listed(vm.row, { ...vm.toJSON(), account_id: vm.row.account_id });
  }
}
