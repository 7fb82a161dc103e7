/** Machines of all accounts, for administrators. */
import { listPage, rowIdCursor } from '../../http/list-page.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { Listed } from '../../metadata/list.ts';
import { Type } from '../../platform/json-schema.ts';
import { AdminVm, AdminVmsQuery, DeletedVm, StopQuery, Vm, VmPath } from '../schema.ts';
import type { ListedVm } from './machines.ts';
import { STOPPED_BY_ADMINISTRATOR } from './stop-causes.ts';
import { graceMsOf, type VmRoutesDeps } from './vm-routes.ts';

const VM = '/api/admin/vms/{vm_id}';

export function vmAdminRoutes({ machines, power, deleter }: VmRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/admin/vms',
      name: 'adminListVms',
      tag: 'admin',
      summary: 'List the virtual machines of all accounts, or of one, oldest first',
      permission: 'admin',
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
      path: `${VM}/stop`,
      name: 'adminStopVm',
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
      path: VM,
      name: 'adminDeleteVm',
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
