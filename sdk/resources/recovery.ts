import type { RecoveryKeyProof } from '../../build/sdk/schema.d.ts';
import type { CallOptions, Transport } from '../transport.ts';

/** Recovery points of the whole cloud; for administrators. */
export function recoveryCalls(transport: Transport) {
  const of = (point_id: string) => ({ params: { point_id } });
  return {
    points: {
      list: (options?: CallOptions) => transport.pages('GET /api/disaster-recovery/points', {}, options),
      create: (query: { wait?: number } = {}, options?: CallOptions) =>
        transport.json('POST /api/disaster-recovery/points', { query }, options),
      get: (id: string, options?: CallOptions) =>
        transport.json('GET /api/disaster-recovery/points/{point_id}', of(id), options),
      delete: (id: string, options?: CallOptions) =>
        transport.json('DELETE /api/disaster-recovery/points/{point_id}', of(id), options),
      verify: (id: string, query: { wait?: number } = {}, options?: CallOptions) =>
        transport.json('POST /api/disaster-recovery/points/{point_id}/verify', { ...of(id), query }, options),
      cancel: (id: string, options?: CallOptions) =>
        transport.json('POST /api/disaster-recovery/points/{point_id}/cancel', of(id), options),
      undelete: (id: string, options?: CallOptions) =>
        transport.json('POST /api/disaster-recovery/points/{point_id}/undelete', of(id), options),
    },
    checkTarget: (options?: CallOptions) => transport.json('POST /api/disaster-recovery/check', {}, options),
    showKey: (options?: CallOptions) => transport.json('POST /api/admin/recovery-key', {}, options),
    confirmKey: (body: RecoveryKeyProof, options?: CallOptions) =>
      transport.json('POST /api/admin/recovery-key/confirm', { body }, options),
  };
}
