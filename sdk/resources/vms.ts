import type { Calls, NewVm } from '../../build/sdk/schema.d.ts';
import type { Transport } from '../transport.ts';

type MetricsQuery = Calls['GET /api/vms/{vm_id}/metrics']['input']['query'];
type StopQuery = Calls['POST /api/vms/{vm_id}/stop']['input']['query'];

/** Virtual machines, and what they can be made of. */
export function vmCalls(transport: Transport) {
  return {
    instanceTypes: { list: () => transport.json('GET /api/instance-types', {}) },
    images: { list: () => transport.json('GET /api/images', {}) },
    vms: {
      list: () => transport.pages('GET /api/vms', {}),
      create: (body: NewVm) => transport.json('POST /api/vms', { body }),
      get: (vm_id: string) => transport.json('GET /api/vms/{vm_id}', { params: { vm_id } }),
      delete: (vm_id: string) => transport.json('DELETE /api/vms/{vm_id}', { params: { vm_id } }),
      start: (vm_id: string) => transport.json('POST /api/vms/{vm_id}/start', { params: { vm_id } }),
      stop: (vm_id: string, query: StopQuery = {}) =>
        transport.json('POST /api/vms/{vm_id}/stop', { params: { vm_id }, query }),
      metrics: (vm_id: string, query: MetricsQuery = {}) =>
        transport.json('GET /api/vms/{vm_id}/metrics', { params: { vm_id }, query }),
      log: (vm_id: string, query: { bytes?: number } = {}) =>
        transport.text('GET /api/vms/{vm_id}/log', { params: { vm_id }, query }),
      /** For consoleUrl(); good once. */
      consoleTicket: (vm_id: string) =>
        transport.json('POST /api/vms/{vm_id}/console-tickets', { params: { vm_id } }),
      /** Path of the WebSocket of the serial console. */
      consoleUrl: (vm_id: string, query: { ticket?: string } = {}) =>
        transport.url('GET /api/vms/{vm_id}/console', { params: { vm_id }, query }),
    },
  };
}
