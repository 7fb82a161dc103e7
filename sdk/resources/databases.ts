import type {
  Calls,
  DatabaseChange,
  DatabaseQuery,
  DatabaseUndeletion,
  NewDatabase,
} from '../../build/sdk/schema.d.ts';
import type { CallOptions, Transport, UploadOptions } from '../transport.ts';

type MetricsQuery = Calls['GET /api/databases/{database_id}/metrics']['input']['query'];

/** Databases of all engines. */
export function databaseCalls(transport: Transport) {
  const of = (database_id: string) => ({ params: { database_id } });
  return {
    databaseEngines: {
      list: (options?: CallOptions) => transport.json('GET /api/database-engines', {}, options),
    },
    databases: {
      /** `deleted`: those that can still be brought back. */
      list: (query: { deleted?: boolean } = {}, options?: CallOptions) =>
        transport.pages('GET /api/databases', { query }, options),
      create: (body: NewDatabase, options?: CallOptions) =>
        transport.json('POST /api/databases', { body }, options),
      get: (id: string, options?: CallOptions) =>
        transport.json('GET /api/databases/{database_id}', of(id), options),
      change: (id: string, body: DatabaseChange, options?: CallOptions) =>
        transport.json('PATCH /api/databases/{database_id}', { ...of(id), body }, options),
      /** `keep: false`: at once and for good, without a last dump. */
      delete: (id: string, query: { keep?: boolean } = {}, options?: CallOptions) =>
        transport.json('DELETE /api/databases/{database_id}', { ...of(id), query }, options),
      undelete: (id: string, body: DatabaseUndeletion = {}, options?: CallOptions) =>
        transport.json('POST /api/databases/{database_id}/undelete', { ...of(id), body }, options),
      credentials: (id: string, options?: CallOptions) =>
        transport.json('GET /api/databases/{database_id}/credentials', of(id), options),
      rotateCredentials: (id: string, options?: CallOptions) =>
        transport.json('POST /api/databases/{database_id}/credentials/rotate', of(id), options),
      /** Ends all sessions of the account's server, whatever they do. */
      restart: (id: string, options?: CallOptions) =>
        transport.json('POST /api/databases/{database_id}/restart', of(id), options),
      query: (id: string, body: DatabaseQuery, options?: CallOptions) =>
        transport.json('POST /api/databases/{database_id}/query', { ...of(id), body }, options),
      tables: (id: string, options?: CallOptions) =>
        transport.json('GET /api/databases/{database_id}/tables', of(id), options),
      log: (id: string, query: { bytes?: number } = {}, options?: CallOptions) =>
        transport.text('GET /api/databases/{database_id}/log', { ...of(id), query }, options),
      dump: (id: string, query: { format?: string } = {}, options?: CallOptions) =>
        transport.bytes('GET /api/databases/{database_id}/dump', { ...of(id), query }, options),
      /** Where a browser with a session downloads a dump. */
      dumpUrl: (id: string, query: { format?: string } = {}) =>
        transport.url('GET /api/databases/{database_id}/dump', { ...of(id), query }),
      load: (id: string, file: Blob, options?: UploadOptions) =>
        transport.json('POST /api/databases/{database_id}/load', { ...of(id), form: { file } }, options),
      metrics: (id: string, query: MetricsQuery = {}, options?: CallOptions) =>
        transport.json('GET /api/databases/{database_id}/metrics', { ...of(id), query }, options),
    },
  };
}
