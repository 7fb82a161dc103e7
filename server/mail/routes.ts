/** Mail over REST, for administrators. */
import { listPage, Paging, rowIdCursor } from '../http/list-page.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { Type } from '../platform/json/json-schema.ts';
import type { Mails } from './mails.ts';
import { Mail, MailStatus, TestMailBody } from './schema.ts';

const COMMON = { tag: 'admin', permission: 'admin' } as const;

export function mailRoutes({ mails }: { readonly mails: Mails }): Route[] {
  return [
    defineRoute({
      ...COMMON,
      method: 'GET',
      permission: 'admin:read',
      path: '/api/admin/mail',
      name: 'adminGetMail',
      summary: 'Show whether this cloud sends mail, and how much waits',
      responses: { 200: MailStatus },
      handler: () => mails.status(),
    }),
    defineRoute({
      ...COMMON,
      method: 'GET',
      permission: 'admin:read',
      path: '/api/admin/mails',
      name: 'adminListMails',
      summary: 'List the mail of the last 30 days',
      description: 'Newest first. The text of an e-mail is kept only until it is sent, and is never shown.',
      query: Type.Object(Paging),
      responses: { 200: Type.Array(Mail) },
      produces: 'list',
      errors: ['invalid_cursor'],
      handler: ({ query: { limit, cursor }, request }) => {
        const most = limit === undefined ? Number.POSITIVE_INFINITY : limit + 1;
        const entries = mails.list({ before: rowIdCursor(cursor), limit: most });
        return listPage({ request, limit, entries, cursorOf: ({ id }) => String(id) });
      },
    }),
    defineRoute({
      ...COMMON,
      method: 'POST',
      path: '/api/admin/mail/test',
      name: 'adminSendTestMail',
      summary: 'Send a mail, to try the mail server',
      description:
        'The list of mails shows the result. If the mail server fails, the mail is sent again later, with an alarm.',
      body: TestMailBody,
      responses: { 201: Mail },
      errors: ['mail_not_set'],
      handler: (call) => mails.test(call, call.body.to),
    }),
  ];
}
