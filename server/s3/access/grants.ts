/** Access control lists: grants and their grantees. */
import type { AccountName, Acl, Grant, GrantPermission } from '../../storage/buckets/bucket-settings.ts';

export type Group = 'all' | 'authenticated' | 'logs';

export const GROUP_URIS: Readonly<Record<Group, string>> = {
  all: 'http://acs.amazonaws.com/groups/global/AllUsers',
  authenticated: 'http://acs.amazonaws.com/groups/global/AuthenticatedUsers',
  logs: 'http://acs.amazonaws.com/groups/s3/LogDelivery',
};

/**
 * A canned ACL that an upload or a bucket may request, for its owner and that of the bucket. Groups
 * come first: clients that sort grants by account name look for one at the start.
 */
export function cannedGrants(
  name: string,
  owner: AccountName,
  bucketOwner: AccountName,
): readonly Grant[] | undefined {
  const own: Grant = { ...owner, permission: 'FULL_CONTROL' };
  const toBucketOwner = (permission: GrantPermission): Grant[] =>
    owner.id === bucketOwner.id ? [own] : [own, { ...bucketOwner, permission }];
  const lists: Readonly<Record<string, readonly Grant[]>> = {
    private: [own],
    'public-read': [{ group: 'all', permission: 'READ' }, own],
    'public-read-write': [{ group: 'all', permission: 'READ' }, { group: 'all', permission: 'WRITE' }, own],
    'authenticated-read': [{ group: 'authenticated', permission: 'READ' }, own],
    'aws-exec-read': [own],
    'bucket-owner-read': toBucketOwner('READ'),
    'bucket-owner-full-control': toBucketOwner('FULL_CONTROL'),
    'log-delivery-write': [
      { group: 'logs', permission: 'WRITE' },
      { group: 'logs', permission: 'READ_ACP' },
      own,
    ],
  };
  return Object.hasOwn(lists, name) ? lists[name] : undefined;
}

/** The ACL of a row, with its owner. */
export function aclOf(text: string | null, bucketOwner: AccountName): Required<Acl> {
  if (text === null) return { owner: bucketOwner, grants: [{ ...bucketOwner, permission: 'FULL_CONTROL' }] };
  const { owner = bucketOwner, grants } = JSON.parse(text) as Acl;
  return { owner, grants };
}

/** Grants to everyone, with or without an account. */
export function isPublicGrant(grant: Grant): boolean {
  return 'group' in grant && grant.group !== 'logs';
}

/** Whether the ACL grants anything to anyone but that account. */
export function grantsToOthers(grants: readonly Grant[], { id }: AccountName): boolean {
  return grants.some((grant) => 'group' in grant || grant.id !== id);
}

/** `caller`: canonical id; null: anonymous. */
export function isGranted(
  grants: readonly Grant[],
  caller: string | null,
  wanted: { readonly permission: GrantPermission; readonly ignoresPublic: boolean },
): boolean {
  return grants.some((grant) => {
    if (grant.permission !== wanted.permission && grant.permission !== 'FULL_CONTROL') return false;
    if (!('group' in grant)) return grant.id === caller;
    if (wanted.ignoresPublic) return false;
    return grant.group === 'all' || (grant.group === 'authenticated' && caller !== null);
  });
}
