/** The audit log over REST. */
import { listPage, rowIdCursor } from '../http/list-page.ts';
import { streamLines } from '../http/response.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { readTime } from '../platform/clock.ts';
import { Type } from '../platform/json/json-schema.ts';
import { type AuditLog, accountAsked } from './audit-log.ts';
import { AuditEntryView, AuditQuery, AuditVerificationView } from './schema.ts';
import type { Seals } from './seals.ts';

export interface AuditRoutesDeps {
  readonly log: AuditLog;
  readonly seals: Pick<Seals, 'verify'>;
}

export function auditRoutes({ log, seals }: AuditRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/audit',
      name: 'listAudit',
      tag: 'accounts',
      summary: 'Show who did what, newest first',
      description:
        'Every call that changed something, showed a secret or signed in, and refusals for lack of a right. ' +
        'An entry is stored with the effect, in one commit. Reading and writing of objects, and statements in ' +
        'databases, have none. Entries are kept for 365 days.',
      permission: 'account:read',
      query: AuditQuery,
      responses: { 200: Type.Array(AuditEntryView) },
      produces: 'list',
      errors: ['invalid_cursor', 'account_not_found', 'admin_required'],
      handler: async ({ principal, query, request, reply }) => {
        const { account_id, actor = '', action = '', target = '', outcome = '', format } = query;
        const { limit, cursor, from, to } = query;
        const filter = {
          accountId: accountAsked(principal, account_id),
          actor,
          action,
          target,
          outcome,
          from: from === undefined ? 0 : readTime('from', from),
          to: to === undefined ? 0 : readTime('to', to),
        };
        const before = rowIdCursor(cursor);
        const most = limit === undefined ? Number.POSITIVE_INFINITY : limit + 1;
        const entries = log.list(filter, { before, limit: most });
        const texts = await listPage({ request, limit, entries, cursorOf: ({ id }) => String(id) });
        return format === 'jsonl' ? await streamLines(request, reply, texts) : texts;
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/admin/audit/verify',
      name: 'adminVerifyAudit',
      tag: 'admin',
      summary: 'Verify that no sealed entry of the audit log was changed or taken out',
      permission: 'admin',
      responses: { 200: AuditVerificationView },
      handler: () => seals.verify(),
    }),
  ];
}
