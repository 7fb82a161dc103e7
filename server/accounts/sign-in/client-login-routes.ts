/** Logins of programs. Codes are sent in bodies only, which are not logged. */
import { defineRoute, type Route } from '../../http/route.ts';
import { Empty } from '../schema.ts';
import * as shapes from './client-login-schema.ts';
import type { ClientLogins } from './client-logins.ts';

/** Everything under /api/login/…. */
export function clientLoginRoutes(logins: ClientLogins): Route[] {
  return [...browserRoutes(logins), ...deviceRoutes(logins)];
}

function browserRoutes(logins: ClientLogins): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/login/approvals',
      name: 'approveLogin',
      audit: { kind: 'secret', detail: ['name', 'scopes'] },
      isRepeatable: true,
      endsCredential: true,
      tag: 'accounts',
      summary: 'Let a program on this computer log in',
      description:
        'Called by the console when the user approves. A redirect passes the code to the program (RFC 8252), ' +
        'which proves with its verifier (RFC 7636, S256) that it made the request.',
      permission: 'account:write',
      body: shapes.ApprovalBody,
      responses: { 201: shapes.IssuedCode },
      errors: ['password_required'],
      handler: (call) => {
        const { name, scopes, expires_in: expiresIn } = call.body;
        const { code_challenge: challenge, redirect_uri: redirectUri } = call.body;
        return logins.approve(call, { name, scopes, expiresIn, challenge, redirectUri });
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/login/key',
      name: 'redeemLoginCode',
      audit: { kind: 'sign-in', account: 'answer.account_id', target: 'answer.id' },
      isRepeatable: true,
      tag: 'accounts',
      summary: 'Exchange the code of an approved log-in for an access key',
      description: 'Each attempt uses up the code.',
      permission: 'public',
      body: shapes.RedeemBody,
      responses: { 201: shapes.IssuedKey },
      errors: ['invalid_grant', 'too_many_access_keys'],
      handler: (call) =>
        logins.redeem(call, {
          code: call.body.code,
          verifier: call.body.code_verifier,
          redirectUri: call.body.redirect_uri,
        }),
    }),
  ];
}

function deviceRoutes(logins: ClientLogins): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/login/device',
      name: 'startDeviceLogin',
      audit: 'none',
      isRepeatable: true,
      tag: 'accounts',
      summary: 'Request a log-in that a user approves in another browser',
      description:
        'Implements RFC 8628: show `user_code` and `verification_uri`, and poll with `device_code`. When an address ' +
        'has 500 open requests, the oldest one is dropped.',
      permission: 'public',
      body: shapes.DeviceBody,
      responses: { 201: shapes.DeviceCodes },
      handler: ({ body, request: { address } }) => logins.beginDevice({ ...body, address }),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/login/device/find',
      name: 'findDeviceLogin',
      audit: 'none',
      isRepeatable: true,
      endsCredential: true,
      tag: 'accounts',
      summary: 'Show the log-in request of a short code',
      description: 'After wrong codes, further attempts of the account are delayed.',
      permission: 'account:write',
      body: shapes.UserCodeBody,
      responses: { 200: shapes.DeviceLogin },
      errors: ['login_code_not_found'],
      handler: ({ principal, body }) => logins.findDevice(principal, body.user_code),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/login/device/decide',
      name: 'decideDeviceLogin',
      audit: { detail: ['approve'] },
      isRepeatable: true,
      endsCredential: true,
      tag: 'accounts',
      summary: 'Approve or refuse the log-in request of a short code',
      permission: 'account:write',
      body: shapes.DecisionBody,
      responses: { 200: Empty },
      errors: ['login_code_not_found', 'password_required'],
      handler: (call) => {
        const { user_code: typed, approve: isApproved, expires_in: expiresIn } = call.body;
        return logins.decideDevice(call, { typed, isApproved, expiresIn });
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/login/device/key',
      name: 'pollDeviceLogin',
      audit: { kind: 'sign-in', account: 'answer.account_id', target: 'answer.id' },
      isRepeatable: true,
      tag: 'accounts',
      summary: 'Get the access key once the log-in is approved',
      description: 'Poll every `interval` seconds; polling sooner adds 5 s to the interval.',
      permission: 'public',
      body: shapes.PollBody,
      responses: { 201: shapes.IssuedKey },
      errors: [
        'authorization_pending',
        'slow_down',
        'access_denied',
        'invalid_grant',
        'too_many_access_keys',
      ],
      handler: (call) => logins.redeemDevice(call, call.body.device_code),
    }),
  ];
}
