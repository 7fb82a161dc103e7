/** The account's own endpoints (contract §3). */
import type { Principal } from '../calls/principal.ts';
import { invalidCursor, listPage, Paging } from '../http/list-page.ts';
import { defineRoute, type Route, type RouteInput } from '../http/route.ts';
import {
  assertOwnPage,
  assertSameSite,
  readSessionCookies,
  renderEndedSessionCookie,
  renderSessionCookie,
  sessionTokenIn,
} from '../http/session.ts';
import { AppError } from '../platform/errors.ts';
import { isId } from '../platform/ids.ts';
import { Type } from '../platform/json/json-schema.ts';
import type { Accounts } from './accounts.ts';
import type { Closings } from './closings.ts';
import type { AccessKeys } from './keys/access-keys.ts';
import type { ApiKeys } from './keys/api-keys.ts';
import * as shapes from './schema.ts';
import type { PasswordChecks } from './sign-in/password-checks.ts';
import { type SessionRoutesDeps, sessionRoutes } from './sign-in/session-routes.ts';
import { SESSION_MAX_MS } from './sign-in/sessions.ts';

export interface AccountRoutesDeps extends SessionRoutesDeps {
  readonly accounts: Accounts;
  readonly checks: PasswordChecks;
  readonly closings: Closings;
  readonly apiKeys: ApiKeys;
  readonly accessKeys: AccessKeys;
  /** Whether users reach the console over HTTPS. */
  readonly secureCookies: boolean;
  /** CLOUDLET_PUBLIC_URL as set by the operator; empty: taken from the request. */
  readonly publicUrl: string;
}

/** Everything under /api/register, /api/login, /api/logout and /api/account. */
export function accountRoutes(deps: AccountRoutesDeps): Route[] {
  return [
    ...signInRoutes(deps),
    logoutRoute(deps),
    ...ownAccountRoutes(deps),
    ...ownKeyRoutes(deps),
    ...accessKeyRoutes(deps),
    ...sessionRoutes(deps),
  ];
}

/** Routes for callers without a key. */
function signInRoutes({ accounts, sessions, secureCookies, publicUrl }: AccountRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/register',
      name: 'register',
      audit: { kind: 'sign-in', account: 'answer.id' },
      tag: 'accounts',
      summary: 'Register an account',
      description:
        'The response contains the API key. The account gets sign-up credits. If registration is closed, ' +
        'only administrators create accounts.',
      permission: 'public',
      body: shapes.RegisterBody,
      responses: { 201: shapes.Registration },
      errors: ['registration_closed', 'username_taken', 'email_taken', 'overloaded'],
      handler: (call) => {
        const { username, email, password } = call.body;
        return accounts.register(call, { username, email, password, address: call.request.address });
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/login',
      name: 'login',
      audit: { kind: 'sign-in', account: 'answer.id' },
      isRepeatable: true,
      tag: 'accounts',
      summary: 'Log in with a password',
      description:
        'Send `username` (a user name or an e-mail address) or `email`. Begins a session, which has two secrets: the ' +
        'cookie that is set, and `session_token`, to be sent as the header `Cloudlet-Session`. Neither authenticates ' +
        'without the other.',
      permission: 'public',
      body: shapes.LoginBody,
      responses: { 200: shapes.LoggedIn },
      errors: [
        'invalid_credentials',
        'account_suspended',
        'password_change_required',
        'cross_site_request',
        'rate_limited',
        'overloaded',
      ],
      handler: async (call) => {
        const { body, request } = call;
        const { address, headers } = request;
        // Another site's page must not sign its visitor in to another account.
        assertSameSite(request.raw, publicUrl);
        const userAgent = headers['user-agent'] ?? '';
        const login = { name: loginName(body), password: body.password, address, userAgent };
        const { account, cookie, token } = await sessions.login(call, login);
        const maxAgeSeconds = SESSION_MAX_MS / 1000;
        setCookie(request, renderSessionCookie({ value: cookie, secure: secureCookies, maxAgeSeconds }));
        return { ...account, session_token: token };
      },
    }),
  ];
}

/** Whether a session ended; there may have been none. */
const isEnd = (answer: unknown) => typeof answer === 'object' && answer !== null && 'account_id' in answer;

function logoutRoute({ sessions, secureCookies, publicUrl }: AccountRoutesDeps): Route {
  return defineRoute({
    method: 'POST',
    path: '/api/logout',
    name: 'logout',
    audit: { kind: 'sign-in', account: 'answer.account_id', hasEntry: (_, answer) => isEnd(answer) },
    isRepeatable: true,
    tag: 'accounts',
    summary: 'Log out: end the session of the token in Cloudlet-Session, and clear the cookie',
    // Public: the cookie of an ended session can be cleared too, but not by a form of another site.
    permission: 'public',
    responses: { 200: shapes.Empty },
    errors: ['cross_site_request'],
    handler: async (call) => {
      const { request } = call;
      const token = sessionTokenIn(request.raw);
      const isOfBrowser = token !== undefined || readSessionCookies(request.headers.cookie).length > 0;
      if (isOfBrowser) assertOwnPage(request.raw, publicUrl);
      else assertSameSite(request.raw, publicUrl);
      await sessions.logout(call, token);
      setCookie(request, renderEndedSessionCookie(secureCookies));
      return {};
    },
  });
}

function ownAccountRoutes({ accounts, closings, secureCookies }: AccountRoutesDeps): Route[] {
  const profile = (path: string, name: string) =>
    defineRoute({
      method: 'GET',
      path,
      name,
      audit: { kind: 'secret', hasEntry: showsKeyToSession },
      oldSession: 'hidden',
      tag: 'accounts',
      summary: 'Show your account',
      description:
        '`api_key` is returned to that key itself, and to a session whose password was given in the last 15 minutes; ' +
        'otherwise it is null.',
      permission: 'account:read',
      query: shapes.ProfileQuery,
      responses: { 200: shapes.Account },
      errors: ['account_not_found'],
      handler: ({ principal, query }) => accounts.profile(principal, { hasKey: query.api_key !== false }),
    });
  return [
    profile('/api/account', 'getAccount'),
    profile('/api/profile', 'getProfile'),
    defineRoute({
      method: 'PATCH',
      path: '/api/account',
      name: 'updateAccount',
      tag: 'accounts',
      summary: 'Change your e-mail address or password',
      description:
        'A new password ends all other sessions. Keys do not change. If this cloud sends mail, another e-mail ' +
        'address gets a link to confirm it.',
      permission: 'account:write',
      body: shapes.UpdateBody,
      responses: { 200: shapes.Account },
      errors: [
        'account_not_found',
        'invalid_credentials',
        'password_required',
        'email_taken',
        'write_conflict',
        'overloaded',
      ],
      handler: (call) => {
        const { email, password, current_password: currentPassword, mail_about: mailAbout } = call.body;
        const { address } = call.request;
        return accounts.update(call, { email, password, currentPassword, mailAbout, address });
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/account',
      name: 'closeAccount',
      needsOwner: true,
      livesOn: 'host-or-any',
      endsCredential: true,
      tag: 'accounts',
      summary: 'Close your account',
      description:
        'All keys and sessions end and machines are shut down. Signing in within 7 days opens the account again, with ' +
        'a new key. After 7 days (`CLOUDLET_CLOSED_ACCOUNT_DAYS`), the user name and e-mail address become available, ' +
        'the data can no longer be accessed, and the machines are deleted. Needs the account’s current key, or a ' +
        'session whose password was given in the last 15 minutes.',
      permission: 'account:write',
      responses: { 200: shapes.ClosedAccount },
      errors: ['account_not_found', 'password_required', 'last_administrator'],
      handler: async (call) => {
        const closed = await closings.close(call);
        if (call.principal.via === 'session') {
          setCookie(call.request, renderEndedSessionCookie(secureCookies));
        }
        return closed;
      },
    }),
  ];
}

function ownKeyRoutes({ apiKeys, checks }: AccountRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/account/confirm-password',
      name: 'confirmPassword',
      audit: 'sign-in',
      isRepeatable: true,
      tag: 'accounts',
      summary: 'Confirm the password of a session',
      description:
        'For a session that got the error `password_required`; the session is then not asked again for 15 minutes. Wrong passwords ' +
        'are throttled as at log-in.',
      permission: 'account:write',
      body: shapes.ConfirmBody,
      responses: { 200: shapes.ConfirmedPassword },
      errors: ['account_not_found', 'invalid_credentials', 'rate_limited', 'write_conflict', 'overloaded'],
      handler: (call) => {
        const { current_password: password } = call.body;
        return checks.confirm(call, { password, address: call.request.address });
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/account/api-key',
      name: 'rotateApiKey',
      needsOwner: true,
      audit: 'secret',
      endsCredential: true,
      tag: 'accounts',
      summary: 'Replace your API key',
      description:
        'Needs the account’s current key, or a session whose password was given in the last 15 minutes. ' +
        'The old key stays valid during the overlap, and so do ' +
        'links created with that key or in a session.',
      permission: 'account:write',
      body: shapes.RotateBody,
      responses: { 200: shapes.RotatedKey },
      errors: ['password_required', 'too_many_access_keys', 'write_conflict'],
      handler: (call) => apiKeys.rotate(call, call.body.overlap_seconds ?? 0),
    }),
  ];
}

function accessKeyRoutes({ accessKeys }: AccountRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/account/access-keys',
      name: 'listAccessKeys',
      tag: 'accounts',
      summary: 'List your access keys',
      permission: 'account:read',
      query: Type.Object(Paging),
      responses: { 200: Type.Array(shapes.AccessKey) },
      produces: 'list',
      errors: ['invalid_cursor'],
      handler: async ({ principal, query, request }) => {
        const { limit, cursor } = query;
        if (cursor !== undefined && !isId('key', cursor)) throw invalidCursor();
        const page = {
          afterId: cursor ?? '',
          limit: limit === undefined ? Number.MAX_SAFE_INTEGER : limit + 1,
        };
        const entries = accessKeys.list(principal, page);
        return await listPage({ request, limit, entries, cursorOf: (key) => key.id });
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/account/access-keys',
      name: 'createAccessKey',
      audit: { kind: 'secret', detail: ['name', 'scopes', 'buckets', 'expires_in', 'expires_at'] },
      tag: 'accounts',
      summary: 'Create an access key',
      description:
        'The key and its S3 secret are shown only once. A key cannot create a key with more rights than its own; a ' +
        'session needs a password given in the last 15 minutes.',
      permission: 'account:write',
      body: shapes.AccessKeyBody,
      maxBodyBytes: 256 * 1024, // a hundred prefixes
      responses: { 201: shapes.CreatedAccessKey },
      errors: ['password_required', 'too_many_access_keys'],
      handler: (call) => accessKeys.create(call, call.body),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/account/access-keys/{id}',
      name: 'deleteAccessKey',
      tag: 'accounts',
      summary: 'Revoke an access key immediately',
      description:
        'Links created with the key end too. A key can only revoke keys with no more rights than its own.',
      permission: 'account:write',
      params: shapes.AccessKeyPath,
      responses: { 200: shapes.RevokedAccessKey },
      errors: ['access_key_not_found'],
      handler: (call) => accessKeys.revoke(call, call.params.id),
    }),
  ];
}

/** A session that reads its own account gets its key. */
function showsKeyToSession({ via }: Principal, answer: unknown): boolean {
  return via !== 'key' && (answer as { readonly api_key: string | null }).api_key !== null;
}

function loginName(body: { username?: string; email?: string }): string {
  const name = body.username ?? body.email;
  if (name !== undefined) return name;
  const fields = [{ field: 'username', message: 'is required, unless email is given' }];
  throw new AppError('invalid_request', 'username or email is required', { fields });
}

function setCookie(request: RouteInput<unknown, unknown, unknown>['request'], cookie: string): void {
  request.responseHeaders['set-cookie'] = cookie;
}
