/** Endpoints of exports: owners export their own account, administrators any before its removal. */
import { sendStream } from '../../http/bodies/send-content.ts';
import { contentDisposition } from '../../http/response.ts';
import { defineRoute, type Route, type RouteInput, TicketField } from '../../http/route.ts';
import { Type } from '../../platform/json/json-schema.ts';
import { accountIdOf } from '../account-id.ts';
import { AdminAccountPath } from '../schema.ts';
import type { AccountExports, ExportArchive } from './account-exports.ts';

export interface ExportRoutesDeps {
  readonly accountExports: AccountExports;
}

const Query = Type.Object({
  disks: Type.Optional(Type.Boolean({ description: 'Include the disks of machines; default: false' })),
  ticket: TicketField,
});
const Bytes = Type.Unsafe<Uint8Array>({ type: 'string', format: 'binary' });

const DESCRIPTION =
  'A zip that is generated while it is sent: all versions of all objects with their metadata, settings of buckets, a dump of ' +
  'each database, machines (their disks with `disks`), the bill, the audit log of the account, its webhooks and shared links ' +
  '(without their addresses), and the names of its keys, without secrets. Its last file, MANIFEST.json, names each file with its length and SHA-256, and what was left out and ' +
  'why, such as objects encrypted with keys that only clients have. A zip that breaks off has no directory, so every ' +
  'program rejects it. In a session the password must have been given in the last 15 minutes. An account can have one export ' +
  'at a time; at most 4 run in all (503 `overloaded`), and 32 with those read at less than 1 MiB a second: when there are ' +
  'so many, the slowest is stopped for another.';

const common = {
  method: 'GET',
  livesOn: 'host',
  query: Query,
  acceptsTicket: true,
  produces: 'bytes',
  responses: { 200: Bytes },
} as const;

/** Whether the path of a download leads to an export. */
export function isExport(path: string): boolean {
  return /^\/api\/(?:account|admin\/accounts\/[^/?]*)\/export(?:\?|$)/.test(path);
}

/** All routes of exports. */
export function exportRoutes({ accountExports }: ExportRoutesDeps): Route[] {
  return [
    defineRoute({
      ...common,
      path: '/api/account/export',
      name: 'exportAccount',
      audit: 'change',
      tag: 'accounts',
      summary: 'Download everything of your account as one zip',
      description: `${DESCRIPTION} The bytes count as traffic, like single downloads.`,
      permission: 'everything',
      errors: ['account_not_found', 'password_required', 'job_running', 'out_of_space'],
      handler: async (call) => send(call, await accountExports.openOwn(call, call.query.disks === true)),
    }),
    defineRoute({
      ...common,
      path: '/api/admin/accounts/{id}/export',
      name: 'adminExportAccount',
      audit: { kind: 'change', account: 'params.id' },
      tag: 'admin',
      summary: 'Download all data of an account as one zip',
      description: `${DESCRIPTION} The account may be suspended or scheduled for removal.`,
      permission: 'admin',
      params: AdminAccountPath,
      errors: ['account_not_found', 'password_required', 'job_running', 'out_of_space'],
      handler: async (call) => {
        const disks = call.query.disks === true;
        await send(call, await accountExports.openOf(call, accountIdOf(call.params), disks));
      },
    }),
  ];
}

async function send(
  { request, reply }: Pick<RouteInput<unknown, unknown, unknown>, 'request' | 'reply'>,
  archive: ExportArchive,
): Promise<void> {
  const headers = request.responseHeaders;
  headers['content-type'] = 'application/zip';
  headers['content-disposition'] = contentDisposition('attachment', archive.fileName);
  headers['cache-control'] = 'no-store';
  await sendStream(request, reply, { status: 200, headers, read: archive.send });
}
