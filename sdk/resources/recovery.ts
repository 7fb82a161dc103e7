import type { RecoveryKeyProof } from '../../build/sdk/schema.d.ts';
import type { Transport } from '../transport.ts';

/** Recovery points of the whole cloud; for administrators. */
export function recoveryCalls(transport: Transport) {
  const of = (point_id: string) => ({ params: { point_id } });
  return {
    points: {
      list: () => transport.pages('GET /api/disaster-recovery/points', {}),
      create: (query: { wait?: number } = {}) =>
        transport.json('POST /api/disaster-recovery/points', { query }),
      get: (id: string) => transport.json('GET /api/disaster-recovery/points/{point_id}', of(id)),
      delete: (id: string) => transport.json('DELETE /api/disaster-recovery/points/{point_id}', of(id)),
      verify: (id: string, query: { wait?: number } = {}) =>
        transport.json('POST /api/disaster-recovery/points/{point_id}/verify', { ...of(id), query }),
      cancel: (id: string) => transport.json('POST /api/disaster-recovery/points/{point_id}/cancel', of(id)),
      undelete: (id: string) =>
        transport.json('POST /api/disaster-recovery/points/{point_id}/undelete', of(id)),
    },
    checkTarget: () => transport.json('POST /api/disaster-recovery/check', {}),
    showKey: () => transport.json('POST /api/admin/recovery-key', {}),
    confirmKey: (body: RecoveryKeyProof) => transport.json('POST /api/admin/recovery-key/confirm', { body }),
  };
}
