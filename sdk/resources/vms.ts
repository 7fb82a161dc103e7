import type { Calls, NewVm } from '../../build/sdk/schema.d.ts';
import type { CallOptions, Transport } from '../transport.ts';

type MetricsQuery = Calls['GET /api/vms/{vm_id}/metrics']['input']['query'];
type StopQuery = Calls['POST /api/vms/{vm_id}/stop']['input']['query'];

/** Virtual machines, and what they can be made of. */
export function vmCalls(transport: Transport) {
  return {
    instanceTypes: {
      list: (options?: CallOptions) => transport.json('GET /api/instance-types', {}, options),
    },
    images: { list: (options?: CallOptions) => transport.json('GET /api/images', {}, options) },
    vms: {
      list: (options?: CallOptions) => transport.pages('GET /api/vms', {}, options),
      create: (body: NewVm, options?: CallOptions) => transport.json('POST /api/vms', { body }, options),
      get: (vm_id: string, options?: CallOptions) =>
        transport.json('GET /api/vms/{vm_id}', { params: { vm_id } }, options),
      delete: (vm_id: string, options?: CallOptions) =>
        transport.json('DELETE /api/vms/{vm_id}', { params: { vm_id } }, options),
      start: (vm_id: string, options?: CallOptions) =>
        transport.json('POST /api/vms/{vm_id}/start', { params: { vm_id } }, options),
      stop: (vm_id: string, query: StopQuery = {}, options?: CallOptions) =>
        transport.json('POST /api/vms/{vm_id}/stop', { params: { vm_id }, query }, options),
      metrics: (vm_id: string, query: MetricsQuery = {}, options?: CallOptions) =>
        transport.json('GET /api/vms/{vm_id}/metrics', { params: { vm_id }, query }, options),
      log: (vm_id: string, query: { bytes?: number } = {}, options?: CallOptions) =>
        transport.text('GET /api/vms/{vm_id}/log', { params: { vm_id }, query }, options),
      /** For consoleUrl(); good once. */
      consoleTicket: (vm_id: string, options?: CallOptions) =>
        transport.json('POST /api/vms/{vm_id}/console-tickets', { params: { vm_id } }, options),
      /** Path of the WebSocket of the serial console. */
      consoleUrl: (vm_id: string, query: { ticket?: string } = {}) =>
        transport.url('GET /api/vms/{vm_id}/console', { params: { vm_id }, query }),
    },
  };
}
