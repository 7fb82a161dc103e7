/** One-time links: one creates the first administrator, others set a new password. */
import { calledHosts } from '../../http/origins.ts';
import { pageHeaders } from '../../http/page.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { Type } from '../../platform/json/json-schema.ts';
import { accountIdOf } from '../account-id.ts';
import * as shapes from '../schema.ts';
import type { MailedLinks } from './mailed-links.ts';
import type { ResetLinks } from './reset-links.ts';
import type { SetupLinks } from './setup-links.ts';
import { ENDED_LINK_PAGE, SETUP_PAGE } from './setup-page.ts';

export interface LinkRoutesDeps {
  readonly mailedLinks: MailedLinks;
  readonly setupLinks: SetupLinks;
  readonly resetLinks: ResetLinks;
  /** Base URL of the API, without a slash at the end. */
  readonly apiUrl: () => string;
}

/** Routes that create the first administrator. */
export function setupRoutes({ setupLinks, apiUrl }: Pick<LinkRoutesDeps, 'setupLinks' | 'apiUrl'>): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/admin/setup-link',
      name: 'adminCreateSetupLink',
      audit: 'secret',
      isRepeatable: true,
      isKeptNowhere: true,
      tag: 'admin',
      summary: 'Create a set-up link',
      description:
        'For the operator, until an administrator exists; used by `cloudlet admin setup-link`. The link ' +
        'works once, for 30 minutes; earlier links stop working.',
      permission: 'admin',
      responses: { 201: shapes.SetupLink },
      errors: ['administrator_exists'],
      handler: (call) =>
        setupLinks.createSetupLink(call, (token) => ({ url: `${apiUrl()}/setup?token=${token}` })),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/setup',
      name: 'setUp',
      audit: { kind: 'sign-in', account: 'answer.id' },
      tag: 'accounts',
      summary: 'Create the first administrator with the set-up link',
      permission: 'public',
      body: shapes.SetupBody,
      responses: { 201: shapes.Account },
      errors: ['invalid_link', 'username_taken', 'email_taken', 'overloaded'],
      handler: (call) => {
        const { token, username, email, password } = call.body;
        const { address } = call.request;
        return setupLinks.setUp(call, token, { username, email, password, address });
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/setup',
      name: 'getSetupPage',
      tag: 'accounts',
      summary: 'Page of the one-time set-up link',
      permission: 'public',
      query: shapes.SetupQuery,
      responses: { 200: Type.String() },
      produces: 'html',
      handler: async ({ query: { token }, request }) => {
        const page = (await setupLinks.isGood(token ?? '')) ? SETUP_PAGE : ENDED_LINK_PAGE;
        Object.assign(request.responseHeaders, pageHeaders(page));
        return page;
      },
    }),
  ];
}

/** Routes that set a forgotten password. */
export function resetRoutes({ resetLinks }: Pick<LinkRoutesDeps, 'resetLinks'>): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/admin/accounts/{id}/reset-link',
      name: 'adminCreateResetLink',
      audit: { kind: 'secret', account: 'params.id' },
      isRepeatable: true,
      isKeptNowhere: true,
      tag: 'admin',
      summary: 'Create a link that sets a new password for an account',
      description:
        'For users without a password, or who forgot it. The link works once, for an hour, and invalidates the account’s ' +
        'earlier one; only its hash is stored. In a session the password must have been given in the last 15 ' +
        'minutes. The account’s webhooks and the log name the creator of the link. A link for an administrator or a ' +
        'former administrator can be created only by the operator on the host, with `cloudlet admin reset-link NAME` ' +
        '(403 `operator_required`).',
      permission: 'admin',
      params: shapes.AdminAccountPath,
      responses: { 201: shapes.ResetLink },
      errors: [
        ...(['account_not_found', 'account_inactive', 'password_required'] as const),
        ...(['operator_required', 'write_conflict'] as const),
      ],
      handler: (call) => resetLinks.create(call, accountIdOf(call.params)),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/reset-password',
      name: 'resetPassword',
      audit: { account: 'answer.account_id', target: 'answer.username' },
      tag: 'accounts',
      summary: 'Set a new password with a reset link',
      description:
        'The token is the fragment of the link, which browsers do not send. The account’s sessions end. Its API keys ' +
        'stay valid: `keys_kept` is their number. The call does not start a session.',
      permission: 'public',
      body: shapes.ResetPasswordBody,
      responses: { 200: shapes.ResetPassword },
      errors: ['invalid_link', 'account_suspended', 'write_conflict', 'overloaded'],
      handler: (call) => {
        const { token, password } = call.body;
        const { address } = call.request;
        return resetLinks.use(call, { token, password, address, hosts: calledHosts(call.request) });
      },
    }),
  ];
}

/** Routes of links that are sent by mail. */
export function mailedLinkRoutes({ mailedLinks }: Pick<LinkRoutesDeps, 'mailedLinks'>): Route[] {
  return [...mailedResetRoutes(mailedLinks), ...confirmationRoutes(mailedLinks)];
}

function mailedResetRoutes(mailedLinks: MailedLinks): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/reset-password/request',
      name: 'requestPasswordReset',
      tag: 'accounts',
      summary: 'Ask for a mail with a link that sets a forgotten password',
      description:
        'The mail is sent if an account has confirmed this address, at most 3 times an hour. The response and its timing ' +
        'are the same for every address.',
      permission: 'public',
      body: shapes.ResetRequestBody,
      responses: { 200: shapes.Empty },
      errors: ['mail_not_set'],
      handler: (call) => mailedLinks.requestReset(call, call.body.email),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/admin/accounts/{id}/reset-link/mail',
      name: 'adminMailResetLink',
      audit: { account: 'params.id' },
      tag: 'admin',
      summary: 'Mail a link that sets a new password to the confirmed address of an account',
      description: 'Like adminCreateResetLink, but the link is mailed and not returned.',
      permission: 'admin',
      params: shapes.AdminAccountPath,
      responses: { 201: shapes.MailedLink },
      errors: [
        ...(['account_not_found', 'account_inactive', 'email_not_confirmed'] as const),
        ...(['mail_not_set', 'operator_required', 'password_required', 'write_conflict'] as const),
      ],
      handler: (call) => mailedLinks.mailReset(call, accountIdOf(call.params)),
    }),
  ];
}

function confirmationRoutes(mailedLinks: MailedLinks): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/account/confirm-email/request',
      name: 'requestEmailConfirmation',
      tag: 'accounts',
      summary: 'Ask for a mail with a link that confirms your e-mail address',
      description: 'At most 3 times an hour. An earlier link stops working.',
      permission: 'account:write',
      responses: { 200: shapes.Confirmation },
      errors: ['account_not_found', 'mail_not_set', 'rate_limited'],
      handler: (call) => mailedLinks.requestConfirmation(call),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/confirm-email',
      name: 'confirmEmail',
      audit: { account: 'answer.account_id', target: 'answer.username' },
      tag: 'accounts',
      summary: 'Confirm an e-mail address with the link that was mailed there',
      description:
        'The token is the fragment of the link, which browsers do not send. Other accounts with this address that have ' +
        'not confirmed it can no longer use the address to log in.',
      permission: 'public',
      body: shapes.ConfirmEmailBody,
      responses: { 200: shapes.ConfirmedEmail },
      errors: ['invalid_link', 'account_suspended', 'email_taken'],
      handler: (call) =>
        mailedLinks.confirm(call, { token: call.body.token, hosts: calledHosts(call.request) }),
    }),
  ];
}
