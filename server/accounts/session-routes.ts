/** Where the account is signed in, and the end of that. */
import { invalidCursor, listPage, Paging } from '../http/list-page.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { isId } from '../platform/ids.ts';
import { Type } from '../platform/json-schema.ts';
import { EndedSession, EndedSessions, Session, SessionPath } from './schema.ts';
import type { Sessions } from './sessions.ts';

/** Everything under /api/account/sessions. */
export function sessionRoutes({ sessions }: { readonly sessions: Sessions }): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/account/sessions',
      name: 'listSessions',
      tag: 'accounts',
      summary: 'List where you are signed in, oldest first',
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
      endsCredential: true,
      tag: 'accounts',
      summary: 'End a session at once',
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
      tag: 'accounts',
      summary: 'End all your sessions but the one that asks',
      description: 'With a key: all of them. Needs the account’s current key or a session.',
      permission: 'account:write',
      responses: { 200: EndedSessions },
      handler: (call) => sessions.endOthers(call),
    }),
  ];
}
