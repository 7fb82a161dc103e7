/** The audit log over REST. */
import { listPage, rowIdCursor } from '../http/list-page.ts';
import { streamLines } from '../http/response.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Reads } from '../metadata/metadata.ts';
import { readTime } from '../platform/clock.ts';
import { invalidField } from '../platform/errors.ts';
import { Type } from '../platform/json/json-schema.ts';
import { type AuditLog, accountAsked } from './audit-log.ts';
import { type AuditHead, verifyChain } from './chain.ts';
import { AuditEntryView, AuditQuery, AuditVerificationView, VerifyQuery } from './schema.ts';

export interface AuditRoutesDeps {
  readonly log: AuditLog;
  readonly reads: Reads;
}

export function auditRoutes({ log, reads }: AuditRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/audit',
      name: 'listAudit',
      tag: 'accounts',
      summary: 'Show who did what, newest first',
      description:
        'Lists calls that changed something, showed a secret or signed in, and calls refused for lack of permission. ' +
        'An entry is stored in the same commit as the effect. Reads and writes of objects are logged where the setting ' +
        '`data_events` of the bucket says so; statements in databases are not. Entries are kept for 365 days.',
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
      summary: 'Verify that no sealed entry of the audit log was changed or removed',
      permission: 'admin:read',
      query: VerifyQuery,
      responses: { 200: AuditVerificationView },
      handler: ({ query }) => verifyChain(reads, headFrom(query.head)),
    }),
  ];
}

/** Throws `invalid_request`. */
function headFrom(text: string | undefined): AuditHead | undefined {
  if (text === undefined) return undefined;
  const [, range, hash = ''] = /^([1-9]\d{0,14}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (range === undefined) throw invalidField('head', 'Send RANGE:HASH, as an earlier call returned it');
  return { range: Number(range), hash };
}
