/** "What may this person, or this key, do?": the edge's own decision about every operation. */
import { type Permission, type Principal, permits } from '../../calls/principal.ts';
import { AppError, type ErrorCode } from '../../platform/errors.ts';
import { namedObject, type Static, Type, textOrNull } from '../../platform/json/json-schema.ts';
import { assertPermitted } from '../caller.ts';
import { defineRoute, type Route } from '../route.ts';

/** A caller as the edge would see it. */
export interface RightsHolder {
  readonly principal: Principal;
  /** A session, or the account's current key. */
  readonly ownsAccount: boolean;
  /** The error of all its calls, such as for a suspended account; null: none. */
  readonly refusal: ErrorCode | null;
}

/** An operation of the S3 protocol, with the permission that a signed request needs. */
export interface S3Right {
  readonly name: string;
  readonly action: string;
  readonly permission: Permission;
}

export interface RightsRoutesDeps {
  readonly s3Operations: readonly S3Right[];
  /** All operations of the API. */
  readonly allRoutes: () => readonly Route[];
  readonly holders: {
    /** The account, or one of its keys. Throws `account_not_found`, `access_key_not_found`. */
    of(accountId: number, keyId: string | undefined): Promise<RightsHolder>;
    ofCaller(principal: Principal): Promise<RightsHolder>;
  };
  /** Throws `account_not_found`. */
  readonly accountIdOf: (params: { readonly id: string }) => number;
}

const OperationRight = namedObject('OperationRight', {
  operation: Type.String({ description: 'operationId' }),
  method: Type.String(),
  path: Type.String(),
  summary: Type.String(),
  allowed: Type.Boolean(),
  code: textOrNull('The error of the call; null: it is allowed'),
});

const S3OperationRight = namedObject('S3OperationRight', {
  operation: Type.String({ examples: ['GetObject'] }),
  action: Type.String({ description: 'Name of the action in bucket policies', examples: ['s3:GetObject'] }),
  allowed: Type.Boolean(),
  code: textOrNull('The error of the call; S3 clients get AccessDenied. null: it is allowed'),
});

const Rights = namedObject('Rights', {
  username: Type.String(),
  key: textOrNull('Id of the access key; null: the account, as in a session or by its API key'),
  is_admin: Type.Boolean({ description: 'Whether it has the rights of an administrator' }),
  is_auditor: Type.Boolean({
    description: 'Whether the caller reads everything that administrators read, and changes nothing',
  }),
  scopes: Type.Array(Type.String()),
  buckets: Type.Union(
    [Type.Array(namedObject('ReachedBucket', { name: Type.String(), prefix: Type.String() })), Type.Null()],
    {
      description: 'Buckets that the key can access, each limited to names that begin with prefix; null: all',
    },
  ),
  refused: textOrNull('The error of each call, such as of a suspended account; null: none'),
  operations: Type.Array(OperationRight),
  s3_operations: Type.Array(S3OperationRight, {
    description: 'In buckets of the account, signed with an access key of these scopes',
  }),
});

const Query = Type.Object({
  key: Type.Optional(Type.String({ maxLength: 64, description: 'Id of an access key of the account' })),
});

const DESCRIPTION =
  'The function that authorizes calls decides for each operation. A call can still be refused because of what it ' +
  'names: a resource of another account, or a bucket outside the limits of the key. Buckets of other accounts that a ' +
  'policy or an access control list opens are not included.';

/** Rights of the caller and of its keys; administrators can read everyone's. */
export function rightsRoutes(deps: RightsRoutesDeps): Route[] {
  const { allRoutes, holders, accountIdOf, s3Operations } = deps;
  const describe = (holder: RightsHolder) => rightsOf(holder, allRoutes(), s3Operations);
  return [
    defineRoute({
      method: 'GET',
      path: '/api/account/rights',
      name: 'getRights',
      tag: 'accounts',
      summary: 'Show what you, or one of your access keys, may do',
      description: `Without \`key\`: the credential of this call. ${DESCRIPTION}`,
      permission: 'account:read',
      query: Query,
      responses: { 200: Rights },
      errors: ['access_key_not_found', 'account_not_found'],
      handler: async ({ principal, query: { key } }) => {
        const { accountId } = principal;
        const holder = key === undefined ? holders.ofCaller(principal) : holders.of(accountId, key);
        return describe(await holder);
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/admin/accounts/{id}/rights',
      name: 'adminGetRights',
      tag: 'admin',
      summary: 'Show what an account, or one of its access keys, may do',
      description: DESCRIPTION,
      permission: 'admin:read',
      params: Type.Object({ id: Type.String({ $id: 'AccountId', description: 'Account id' }) }),
      query: Query,
      responses: { 200: Rights },
      errors: ['access_key_not_found', 'account_not_found'],
      handler: async ({ params, query: { key } }) => describe(await holders.of(accountIdOf(params), key)),
    }),
  ];
}

function rightsOf(
  holder: RightsHolder,
  routes: readonly Route[],
  s3Operations: readonly S3Right[],
): Static<typeof Rights> {
  const { principal, refusal } = holder;
  const { username, isAdmin, isAuditor, scopes, bucketLimits, via, credentialId } = principal;
  return {
    username,
    key: via === 'key' ? credentialId : null,
    is_admin: isAdmin,
    is_auditor: isAuditor,
    scopes: [...scopes],
    buckets: bucketLimits?.map(({ bucket, prefix }) => ({ name: bucket, prefix })) ?? null,
    refused: refusal,
    operations: routes.map((route) => {
      const { name: operation, method, path, summary } = route;
      const code = refusalOf(holder, route);
      return { operation, method, path, summary, allowed: code === null, code };
    }),
    s3_operations: s3Operations.map(({ name: operation, action, permission }) => {
      const code = refusal ?? (permits(principal, permission) ? null : 'scope_required');
      return { operation, action, allowed: code === null, code };
    }),
  };
}

function refusalOf(holder: RightsHolder, { permission, needsOwner }: Route): ErrorCode | null {
  const { principal, ownsAccount, refusal } = holder;
  if (permission === 'public') return null;
  if (refusal !== null) return refusal;
  try {
    assertPermitted(principal, permission);
  } catch (error) {
    if (error instanceof AppError) return error.code;
    throw error;
  }
  return needsOwner === true && !ownsAccount ? 'scope_required' : null;
}
