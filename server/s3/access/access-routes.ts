/** Access to a bucket, over REST. */
import { defineRoute, type Route } from '../../http/route.ts';
import { namedObject, Type, textOrNull } from '../../platform/json/json-schema.ts';
import { settingsOf } from '../../storage/buckets/bucket-settings.ts';
import type { Buckets } from '../../storage/buckets/buckets.ts';
import type { Downloads } from '../../storage/objects/downloads.ts';
import { BucketPath } from '../../storage/schema.ts';
import { aclOf } from './grants.ts';
import { isOpen, whoMay } from './who.ts';

export interface AccessRoutesDeps {
  readonly buckets: Buckets;
  readonly downloads: Downloads;
}

const May = Type.Enum(['yes', 'no', 'conditional'] as const);

const BucketReach = namedObject('BucketReach', {
  who: Type.Enum(['everyone', 'signed', 'account'] as const, {
    description: '`everyone`: also without a key; `signed`: with a key of any other account',
  }),
  account: textOrNull('Canonical id of an `account`'),
  account_name: textOrNull(),
  list: May,
  read: May,
  write: May,
  delete: May,
});

const BucketAccess = namedObject('BucketAccess', {
  is_public: Type.Boolean({ description: 'Whether the policy or the ACL grants access to everyone' }),
  reach: Type.Array(BucketReach, {
    description: 'Access of all callers other than the owner; `conditional` depends on the request',
  }),
});

export function accessRoutes({ buckets, downloads }: AccessRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/buckets/{name}/access',
      name: 'getBucketAccess',
      tag: 'storage',
      summary: 'Show who besides the owner can access a bucket over S3',
      description:
        'Evaluates the policy, access control lists and public access block as for a request; with `object`, for ' +
        'a request for that object.',
      permission: 'storage:read',
      params: BucketPath,
      query: Type.Object({ object: Type.Optional(Type.String({ maxLength: 1024 })) }),
      responses: { 200: BucketAccess },
      errors: ['bucket_not_found'],
      handler: async ({ principal, params, query }) => {
        const bucket = await buckets.find(principal, params.name);
        const owner = { id: principal.canonicalId, name: principal.username };
        const found =
          query.object === undefined || query.object === ''
            ? undefined
            : await downloads.findNamed(principal, bucket, { name: query.object });
        const list = found && 'content' in found ? aclOf(found.content.row.acl, owner) : null;
        const asked = {
          bucket: bucket.name,
          owner,
          settings: settingsOf(bucket),
          key: query.object ?? 'object',
          objectGrants: list?.grants ?? null,
        };
        const reach = whoMay(asked).map(({ account, ...each }) => ({
          ...each,
          account: account?.id ?? null,
          account_name: account?.name ?? null,
        }));
        return { is_public: isOpen(asked), reach };
      },
    }),
  ];
}
