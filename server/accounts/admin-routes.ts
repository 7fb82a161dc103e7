/** Endpoints for administrators and for the operator's command line. */
import { invalidCursor, listPage } from '../http/list-page.ts';
import { Paging } from '../http/paging.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { Type } from '../platform/json-schema.ts';
import { accountNotFound } from './accounts.ts';
import type { Administration } from './administration.ts';
import * as shapes from './schema.ts';

export interface AdminRoutesDeps {
  readonly administration: Administration;
}

/** Everything under /api/admin/accounts. */
export function adminRoutes({ administration }: AdminRoutesDeps): Route[] {
  return [...accountRoutes(administration), ...actionRoutes(administration)];
}

function accountRoutes(administration: Administration): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/admin/accounts',
      name: 'adminListAccounts',
      tag: 'admin',
      summary: 'List all accounts',
      description: 'Oldest first. Closed accounts are left out.',
      permission: 'admin',
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
      method: 'POST',
      path: '/api/admin/accounts',
      name: 'adminCreateAccount',
      tag: 'admin',
      summary: 'Create an account',
      description: 'Without a password the account has no login, only keys.',
      permission: 'admin',
      body: shapes.AdminCreateBody,
      responses: { 201: shapes.Account },
      errors: ['username_taken', 'email_taken', 'overloaded'],
      handler: ({ body: { username, email, password, is_admin: isAdmin }, request: { address }, receipt }) =>
        administration.create({ username, email, password, isAdmin, address }, receipt),
    }),
  ];
}

function actionRoutes(administration: Administration): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/admin/accounts/{id}/credits',
      name: 'adminAdjustCredits',
      tag: 'admin',
      summary: 'Grant credits, or take them away',
      description: 'A ledger entry with the reason and who did it. A balance never falls below zero.',
      permission: 'admin',
      params: shapes.AdminAccountPath,
      body: shapes.CreditsBody,
      responses: { 200: shapes.AdminAccount },
      errors: ['account_not_found', 'insufficient_credits', 'transfer_exists', 'write_conflict'],
      handler: ({ principal, params, body, receipt }) => {
        const { amount, reason, transfer_id: transferId } = body;
        return administration.credit(
          accountIdOf(params),
          { amount, reason, transferId, by: principal },
          receipt,
        );
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/admin/accounts/{id}/suspend',
      name: 'adminSuspendAccount',
      tag: 'admin',
      summary: 'Suspend an account',
      description:
        'Its keys and sessions are refused with 403 until it is resumed, and its machines are shut down, ' +
        'with `account_suspended` as the reason. Nothing is removed.',
      permission: 'admin',
      params: shapes.AdminAccountPath,
      body: shapes.SuspendBody,
      responses: { 200: shapes.AdminAccount },
      errors: ['account_not_found'],
      handler: ({ principal, params, body: { reason }, receipt }) =>
        administration.suspend(principal, { accountId: accountIdOf(params), reason }, receipt),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/admin/accounts/{id}/resume',
      name: 'adminResumeAccount',
      tag: 'admin',
      summary: 'Resume a suspended account',
      description:
        'Machines that its suspension stopped start again, unless they were started and stopped since. ' +
        'Without credits they wait for some.',
      permission: 'admin',
      params: shapes.AdminAccountPath,
      responses: { 200: shapes.AdminAccount },
      errors: ['account_not_found'],
      handler: ({ params, receipt }) => administration.resume(accountIdOf(params), receipt),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/admin/accounts/{id}/api-key',
      name: 'adminShowApiKey',
      tag: 'admin',
      summary: 'Show the API key of an account',
      description: 'Makes one when the account has none.',
      permission: 'admin',
      params: shapes.AdminAccountPath,
      responses: { 200: shapes.Account },
      errors: ['account_not_found'],
      handler: ({ params, receipt }) => administration.showKey(accountIdOf(params), receipt),
    }),
  ];
}

/** Text that is no id names no account. */
function accountIdOf(params: { id: string }): number {
  const id = parseAccountId(params.id);
  if (id === undefined) throw accountNotFound();
  return id;
}

function parseAccountId(text: string): number | undefined {
  return /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined;
}
