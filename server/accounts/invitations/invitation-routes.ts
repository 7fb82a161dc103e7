/** Endpoints of invitations: administrators create them, and people with a link join. */
import { invalidCursor, listPage, Paging } from '../../http/list-page.ts';
import { calledHosts } from '../../http/origins.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { isId } from '../../platform/ids.ts';
import { Type } from '../../platform/json/json-schema.ts';
import { Empty, Registration, ResetRequestBody } from '../schema.ts';
import * as shapes from './invitation-schema.ts';
import type { Invitations } from './invitations.ts';

/** The table with the most rows, each of a few hundred bytes. */
const TABLE_MAX_BYTES = 2 * 2 ** 20;

export interface InvitationRoutesDeps {
  readonly invitations: Invitations;
}

/** All routes of invitations. */
export function invitationRoutes({ invitations }: InvitationRoutesDeps): Route[] {
  return [...administratorRoutes(invitations), ...listRoutes(invitations), ...joinRoutes(invitations)];
}

function administratorRoutes(invitations: Invitations): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/admin/invitations',
      name: 'adminCreateInvitation',
      audit: { kind: 'secret', detail: ['plan', 'credits', 'spend_cap', 'max_uses'] },
      isRepeatable: true,
      isKeptNowhere: true,
      tag: 'admin',
      summary: 'Create an invitation for one or several people',
      description:
        'The link opens a page where the invited person sets a password and gets an account, `max_uses` times at most. ' +
        'Only the hash of the token is stored. The link works only at the host name that this call was sent to. ' +
        'With `mail` it is mailed to `email` and shown to nobody.',
      permission: 'admin',
      body: shapes.InvitationBody,
      responses: { 201: shapes.CreatedInvitation },
      errors: ['registration_closed', 'mail_not_set'],
      handler: (call) => invitations.create(call, call.body),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/admin/invitations/import',
      name: 'adminImportInvitations',
      audit: { kind: 'secret', detail: ['plan', 'credits', 'spend_cap'] },
      isRepeatable: true,
      isKeptNowhere: true,
      maxBodyBytes: TABLE_MAX_BYTES,
      tag: 'admin',
      summary: 'Create an invitation for each row of a CSV table',
      description:
        'All or nothing: errors name the lines of invalid rows. The other members are the defaults ' +
        'for empty fields.',
      permission: 'admin',
      body: shapes.InvitationFileBody,
      responses: { 201: shapes.CreatedInvitations },
      errors: ['registration_closed', 'mail_not_set'],
      handler: (call) => invitations.createMany(call, call.body),
    }),
  ];
}

function listRoutes(invitations: Invitations): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/admin/invitations',
      name: 'adminListInvitations',
      tag: 'admin',
      summary: 'List all invitations',
      description:
        'Oldest first, without their links. Accounts have the `invitation_id` they were created with.',
      permission: 'admin:read',
      query: Type.Object(Paging),
      responses: { 200: Type.Array(shapes.Invitation) },
      produces: 'list',
      errors: ['invalid_cursor'],
      handler: async ({ query: { limit, cursor = '' }, request }) => {
        if (cursor !== '' && !isId('inv', cursor)) throw invalidCursor();
        const asked = limit === undefined ? Number.POSITIVE_INFINITY : limit + 1;
        const entries = invitations.list({ afterId: cursor, limit: asked });
        return await listPage({ request, limit, entries, cursorOf: ({ id }) => id });
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/admin/invitations/{id}/renew',
      name: 'adminRenewInvitation',
      audit: 'secret',
      isRepeatable: true,
      isKeptNowhere: true,
      tag: 'admin',
      summary: 'Replace the link of an invitation',
      description:
        'For a link that is lost, has expired or went to a wrong address: the old link stops working, and the new one ' +
        'has `expires_in` from now. Plan, credits, uses and the end of the accounts stay. Refused once all its accounts ' +
        'are created, and after it was revoked.',
      permission: 'admin',
      params: shapes.InvitationPath,
      body: shapes.RenewalBody,
      responses: { 200: shapes.CreatedInvitation },
      errors: ['registration_closed', 'mail_not_set', 'invitation_not_found', 'write_conflict'],
      handler: (call) => invitations.renew(call, call.params.id, call.body),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/admin/invitations/{id}',
      name: 'adminRevokeInvitation',
      tag: 'admin',
      summary: 'Revoke an invitation',
      description: 'The link stops working. Accounts created with it stay.',
      permission: 'admin',
      params: shapes.InvitationPath,
      responses: { 200: shapes.Invitation },
      errors: ['invitation_not_found'],
      handler: (call) => invitations.revoke(call, call.params.id),
    }),
  ];
}

function joinRoutes(invitations: Invitations): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/register/request',
      name: 'requestRegistration',
      tag: 'accounts',
      summary: 'Request a mail with a link that creates an account',
      description:
        'Available where only addresses of some domains may register (`registration` of `GET /api` is `domain`). The response and its timing ' +
        'are the same whether an account has the address or not; at most 3 mails an hour are sent to it.',
      permission: 'public',
      body: ResetRequestBody,
      responses: { 200: Empty },
      errors: ['registration_closed'],
      handler: (call) => invitations.request(call, call.body.email),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/join/invitation',
      name: 'showInvitation',
      audit: 'none',
      changesNothing: true,
      tag: 'accounts',
      summary: 'Show an invitation',
      description:
        'The token is the fragment of the link, which browsers do not send. The call does not count as a use.',
      permission: 'public',
      body: shapes.ShowInvitationBody,
      responses: { 200: shapes.ShownInvitation },
      errors: ['invalid_link', 'registration_closed'],
      handler: ({ body, request }) => invitations.show({ token: body.token, hosts: calledHosts(request) }),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/join',
      name: 'join',
      audit: { kind: 'sign-in', account: 'answer.id', target: 'answer.username' },
      tag: 'accounts',
      summary: 'Create an account with an invitation',
      description:
        'The user name and e-mail address come from the invitation, or from the request if the invitation has none. ' +
        'The response contains the API key.',
      permission: 'public',
      body: shapes.JoinBody,
      responses: { 201: Registration },
      errors: [
        ...(['invalid_link', 'registration_closed', 'username_taken', 'email_taken'] as const),
        ...(['plan_not_found', 'overloaded'] as const),
      ],
      handler: (call) => {
        const { address } = call.request;
        const joining = { ...call.body, hosts: calledHosts(call.request), address };
        return invitations.join(call, joining);
      },
    }),
  ];
}
