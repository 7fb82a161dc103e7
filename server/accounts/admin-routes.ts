/** Endpoints for administrators and for the operator's command line. */
import { invalidCursor, listPage, Paging } from '../http/list-page.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { Type } from '../platform/json/json-schema.ts';
import { accountIdOf, parseAccountId } from './account-id.ts';
import type { Administration } from './administration.ts';
import type { Closings } from './closings.ts';
import * as shapes from './schema.ts';

export interface AdminRoutesDeps {
  readonly closings: Closings;
  readonly administration: Administration;
}

/** Everything under /api/admin/accounts. */
export function adminRoutes({ administration, closings }: AdminRoutesDeps): Route[] {
  return [...accountRoutes(administration), ...actionRoutes(administration), ...removalRoutes(closings)];
}

function accountRoutes(administration: Administration): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/admin/accounts',
      name: 'adminListAccounts',
      tag: 'admin',
      summary: 'List all accounts',
      description: 'Oldest first. Closed accounts are not listed.',
      permission: 'admin:read',
      query: Type.Object(Paging),
      responses: { 200: Type.Array(shapes.AdminAccount) },
      produces: 'list',
      errors: ['invalid_cursor'],
      handler: async ({ query: { limit, cursor }, request }) => {
        const afterId = cursor === undefined ? 0 : parseAccountId(cursor);
        if (afterId === undefined) throw invalidCursor();
        const asked = limit === undefined ? Number.POSITIVE_INFINITY : limit + 1;
        const entries = administration.list({ afterId, limit: asked });
        return await listPage({ request, limit, entries, cursorOf: (account) => String(account.id) });
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/admin/accounts/{id}',
      name: 'adminGetAccount',
      tag: 'admin',
      summary: 'Show an account',
      permission: 'admin:read',
      params: shapes.AdminAccountPath,
      responses: { 200: shapes.AdminAccount },
      errors: ['account_not_found'],
      handler: (call) => administration.get(accountIdOf(call.params)),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/admin/accounts',
      name: 'adminCreateAccount',
      audit: { kind: 'secret', account: 'answer.id', detail: ['username', 'is_admin'] },
      tag: 'admin',
      summary: 'Create an account',
      description: 'An account without a password cannot log in; it has only keys.',
      permission: 'admin',
      body: shapes.AdminCreateBody,
      responses: { 201: shapes.Account },
      errors: ['username_taken', 'email_taken', 'password_required', 'overloaded'],
      handler: (call) => {
        const { username, email, password, is_admin: isAdmin } = call.body;
        const { address } = call.request;
        return administration.create(call, { username, email, password, isAdmin, address });
      },
    }),
  ];
}

function actionRoutes(administration: Administration): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/admin/accounts/{id}/credits',
      name: 'adminAdjustCredits',
      audit: { account: 'params.id', detail: ['amount', 'reason', 'transfer_id'] },
      livesOn: 'host-or-any',
      tag: 'admin',
      summary: 'Grant or deduct credits',
      description:
        'Adds a ledger entry with the reason and the administrator. A balance never falls below zero.',
      permission: 'admin',
      params: shapes.AdminAccountPath,
      body: shapes.CreditsBody,
      responses: { 200: shapes.AdminAccount },
      errors: ['account_not_found', 'insufficient_credits', 'transfer_exists', 'write_conflict'],
      handler: (call) => {
        const { amount, reason, transfer_id: transferId } = call.body;
        return administration.credit(call, accountIdOf(call.params), { amount, reason, transferId });
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/admin/accounts/{id}/suspend',
      name: 'adminSuspendAccount',
      audit: { account: 'params.id', detail: ['reason'] },
      livesOn: 'host-or-any',
      tag: 'admin',
      summary: 'Suspend an account',
      description:
        'Keys and sessions are refused with 403 until the account is resumed. Machines are shut down, ' +
        'with the reason `account_suspended`. No data is deleted.',
      permission: 'admin',
      params: shapes.AdminAccountPath,
      body: shapes.SuspendBody,
      responses: { 200: shapes.AdminAccount },
      errors: ['account_not_found', 'last_administrator'],
      handler: (call) =>
        administration.suspend(call, { accountId: accountIdOf(call.params), reason: call.body.reason }),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/admin/accounts/{id}/resume',
      name: 'adminResumeAccount',
      audit: { account: 'params.id' },
      livesOn: 'host-or-any',
      tag: 'admin',
      summary: 'Resume a suspended account',
      description:
        'Machines that the suspension stopped start again, unless they were started and stopped since. ' +
        'If the account has no credits, the machines start once it gets some.',
      permission: 'admin',
      params: shapes.AdminAccountPath,
      responses: { 200: shapes.AdminAccount },
      errors: ['account_not_found', 'write_conflict'],
      handler: (call) => administration.resume(call, accountIdOf(call.params)),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/admin/accounts/{id}/api-key',
      name: 'adminShowApiKey',
      audit: { kind: 'secret', account: 'params.id' },
      tag: 'admin',
      summary: 'Show the API key of an account',
      description:
        'Creates a key if the account has none. In a session the password must have been given in the last 15 minutes. ' +
        'The key of another administrator is shown only to the operator on the host.',
      permission: 'admin',
      params: shapes.AdminAccountPath,
      responses: { 200: shapes.Account },
      errors: ['account_not_found', 'operator_required', 'password_required'],
      handler: (call) => administration.showKey(call, accountIdOf(call.params)),
    }),
  ];
}

function removalRoutes(closings: Closings): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/admin/accounts/{id}/remove',
      name: 'adminRemoveAccount',
      audit: { account: 'params.id', detail: ['reason'] },
      livesOn: 'host-or-any',
      tag: 'admin',
      summary: 'Remove an account, after 7 days',
      description:
        'Keys and sessions are refused at once, machines are shut down, and no log-in reopens the account. At ' +
        '`removed_at`, the user name and e-mail address become available, the data can no longer be accessed, and the ' +
        'machines are deleted. Until then adminKeepAccount undoes the removal. In a session the password must have ' +
        'been given in the last 15 minutes.',
      permission: 'admin',
      params: shapes.AdminAccountPath,
      body: shapes.SuspendBody,
      responses: { 200: shapes.AdminAccount },
      errors: ['account_not_found', 'password_required', 'last_administrator', 'write_conflict'],
      handler: (call) => closings.remove(call, accountIdOf(call.params), call.body.reason),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/admin/accounts/{id}/keep',
      name: 'adminKeepAccount',
      audit: { account: 'params.id' },
      livesOn: 'host-or-any',
      tag: 'admin',
      summary: 'Cancel the removal of an account',
      description:
        'Undoes the removal by an administrator, or the closing by the owner, until `removed_at`. Machines start ' +
        'again as after a suspension.',
      permission: 'admin',
      params: shapes.AdminAccountPath,
      responses: { 200: shapes.AdminAccount },
      errors: ['account_not_found', 'write_conflict'],
      handler: (call) => closings.keep(call, accountIdOf(call.params)),
    }),
  ];
}
