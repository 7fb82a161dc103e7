import type {
  Calls,
  Database,
  DatabaseChange,
  DatabaseQuery,
  DatabaseUndeletion,
  NewDatabase,
} from '../../build/sdk/schema.d.ts';
import type { CallOptions, Transport } from '../transport.ts';
import { sendForm, type UploadOptions } from '../upload.ts';

type MetricsQuery = Calls['GET /api/databases/{database_id}/metrics']['input']['query'];

/** Databases of all engines. */
export function databaseCalls(transport: Transport) {
  const of = (database_id: string) => ({ params: { database_id } });
  return {
    databaseEngines: { list: () => transport.json('GET /api/database-engines', {}) },
    databases: {
      /** `deleted`: those that can still be brought back. */
      list: (query: { deleted?: boolean } = {}) => transport.pages('GET /api/databases', { query }),
      create: (body: NewDatabase) => transport.json('POST /api/databases', { body }),
      get: (id: string) => transport.json('GET /api/databases/{database_id}', of(id)),
      change: (id: string, body: DatabaseChange) =>
        transport.json('PATCH /api/databases/{database_id}', { ...of(id), body }),
      delete: (id: string) => transport.json('DELETE /api/databases/{database_id}', of(id)),
      undelete: (id: string, body: DatabaseUndeletion = {}) =>
        transport.json('POST /api/databases/{database_id}/undelete', { ...of(id), body }),
      credentials: (id: string) => transport.json('GET /api/databases/{database_id}/credentials', of(id)),
      rotateCredentials: (id: string) =>
        transport.json('POST /api/databases/{database_id}/credentials/rotate', of(id)),
      query: (id: string, body: DatabaseQuery, options?: CallOptions) =>
        transport.json('POST /api/databases/{database_id}/query', { ...of(id), body }, options),
      tables: (id: string) => transport.json('GET /api/databases/{database_id}/tables', of(id)),
      log: (id: string, query: { bytes?: number } = {}) =>
        transport.text('GET /api/databases/{database_id}/log', { ...of(id), query }),
      dump: (id: string, query: { format?: string } = {}) =>
        transport.bytes('GET /api/databases/{database_id}/dump', { ...of(id), query }),
      /** Where a browser with a session downloads a dump. */
      dumpUrl: (id: string, query: { format?: string } = {}) =>
        transport.url('GET /api/databases/{database_id}/dump', { ...of(id), query }),
      load: async (id: string, file: Blob, options?: UploadOptions): Promise<Database> => {
        const form = new FormData();
        form.set('file', file);
        const url = transport.url('POST /api/databases/{database_id}/load', of(id));
        return (await sendForm({ url, headers: transport.credentials, form }, options)) as Database;
      },
      metrics: (id: string, query: MetricsQuery = {}) =>
        transport.json('GET /api/databases/{database_id}/metrics', { ...of(id), query }),
    },
  };
}
