/** Sessions of an account, and tickets for URLs that browsers open. */
import type { Tickets } from '../../calls/tickets.ts';
import { invalidCursor, listPage, Paging } from '../../http/list-page.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { formatTime } from '../../platform/clock.ts';
import { isId } from '../../platform/ids.ts';
import { Type } from '../../platform/json/json-schema.ts';
import { isExport } from '../export/export-routes.ts';
import { EndedSession, EndedSessions, Session, SessionPath, Ticket, TicketBody } from '../schema.ts';
import type { PasswordChecks } from './password-checks.ts';
import type { Sessions } from './sessions.ts';

export interface SessionRoutesDeps {
  readonly sessions: Sessions;
  readonly tickets: Tickets;
  readonly checks: Pick<PasswordChecks, 'assertFresh'>;
}

/** Everything under /api/account/sessions, and tickets. */
export function sessionRoutes({ sessions, tickets, checks }: SessionRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/account/sessions',
      name: 'listSessions',
      tag: 'accounts',
      summary: 'List your sessions, oldest first',
      permission: 'account:read',
      query: Type.Object(Paging),
      responses: { 200: Type.Array(Session) },
      produces: 'list',
      errors: ['invalid_cursor'],
      handler: async ({ principal, query, request }) => {
        const { limit, cursor } = query;
        if (cursor !== undefined && !isId('ses', cursor)) throw invalidCursor();
        const most = limit === undefined ? Number.MAX_SAFE_INTEGER : limit + 1;
        const entries = sessions.list(principal, { afterId: cursor ?? '', limit: most });
        return await listPage({ request, limit, entries, cursorOf: (session) => session.id });
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/account/sessions/{id}',
      name: 'endSession',
      needsOwner: true,
      endsCredential: true,
      tag: 'accounts',
      summary: 'End a session immediately',
      description: 'Needs the account’s current key or a session.',
      permission: 'account:write',
      params: SessionPath,
      responses: { 200: EndedSession },
      errors: ['session_not_found'],
      handler: (call) => sessions.end(call, call.params.id),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/account/sessions',
      name: 'endOtherSessions',
      needsOwner: true,
      tag: 'accounts',
      summary: 'End all your other sessions',
      description: 'With a key, ends all sessions. Needs the account’s current key or a session.',
      permission: 'account:write',
      responses: { 200: EndedSessions },
      handler: (call) => sessions.endOthers(call),
    }),
    ticketRoute({ tickets, checks }),
  ];
}

function ticketRoute({ tickets, checks }: Pick<SessionRoutesDeps, 'tickets' | 'checks'>): Route {
  return defineRoute({
    method: 'POST',
    path: '/api/account/tickets',
    name: 'createTicket',
    audit: 'none',
    isRepeatable: true,
    tag: 'accounts',
    summary: 'Get a ticket for a download or a WebSocket',
    description:
      'For browsers, which cannot send a key or a session token with a URL that they open. A ticket authenticates ' +
      'one path and query for 60 s, as `?ticket=` in the returned `url`: for one WebSocket, or for one ' +
      'download and its resumptions. For an export of an account, a session needs a fresh password here already: a ' +
      'browser could not ask for it during the download.',
    permission: 'authenticated',
    body: TicketBody,
    responses: { 201: Ticket },
    errors: ['password_required'],
    handler: async ({ principal, body: { path } }) => {
      if (isExport(path)) await checks.assertFresh(principal);
      const { ticket, expiresAt } = tickets.issue(principal, path);
      const url = `${path}${path.includes('?') ? '&' : '?'}ticket=${ticket}`;
      return { ticket, url, expires_at: formatTime(expiresAt) };
    },
  });
}
