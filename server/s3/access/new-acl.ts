/** Access control lists in requests: canned, in headers and in XML, and the ACL of an upload. */

import type { IncomingHttpHeaders } from 'node:http';
import {
  child,
  children,
  parseXml,
  S3Error,
  textOf,
  type XmlElement,
  type XmlNode,
  xmlDocument,
} from '../../../libs/s3-wire/index.ts';
import type { AccountDirectory } from '../../accounts/directory.ts';
import { permits } from '../../calls/principal.ts';
import {
  type AccountName,
  type Acl,
  type Grant,
  type GrantPermission,
  type PublicAccess,
  settingsOf,
} from '../../storage/buckets/bucket-settings.ts';
import { accessOf, accountNodes, keyOf, type S3Call } from '../s3-call.ts';
import { cannedGrants, GROUP_URIS, type Group, grantsToOthers, isPublicGrant } from './grants.ts';

/**
 * For the row of a new object; null: the bucket's owner, alone. Throws S3Error AccessDenied (an ACL
 * that the caller may not set, or a public one where those are blocked),
 * AccessControlListNotSupported, and the errors of reading the headers.
 */
export async function newAcl(call: S3Call): Promise<string | null> {
  const access = accessOf(call);
  const { caller } = call.who;
  const { headers } = call.what;
  const { accounts } = call.tools;
  const canned = headers['x-amz-acl'];
  const bucketOwner = access.owner;
  // An anonymous upload belongs to the bucket owner, who pays for it.
  const writer: AccountName =
    caller.via === 'nobody' ? bucketOwner : { id: caller.canonicalId, name: caller.username };
  const yields = access.ownership === 'BucketOwnerPreferred' && canned === 'bucket-owner-full-control';
  const owner = access.hasLists && !yields ? writer : bucketOwner;
  const grants = await headerGrants(headers, { level: 'object', owner, bucketOwner }, accounts);
  if (!access.hasLists) {
    assertNoLists(canned, grants, bucketOwner);
    return null;
  }
  if (grants !== undefined && grantsToOthers(grants, bucketOwner)) assertMayGrant(call, grants, owner);
  return aclText(owner, grants, bucketOwner);
}

/**
 * Throws S3Error AccessControlListNotSupported for any ACL but one that grants everything to the
 * owner of the bucket. Amazon refuses `private` here too.
 */
export function assertNoLists(
  canned: unknown,
  grants: readonly Grant[] | undefined,
  bucketOwner: AccountName,
): void {
  if (grants === undefined || (isOnly(grants, bucketOwner) && (canned ?? ALL_TO_OWNER) === ALL_TO_OWNER))
    return;
  throw new S3Error('AccessControlListNotSupported');
}

/** Throws S3Error AccessDenied for a public ACL if the bucket blocks public ACLs. */
export function assertPublicAllowed(publicAccess: PublicAccess | undefined, grants: readonly Grant[]): void {
  if (publicAccess?.blockAcls !== true || !grants.some(isPublicGrant)) return;
  throw new S3Error('AccessDenied', 'Public access control lists are blocked by the bucket');
}

/**
 * The uploader to a bucket of another account owns the object, and may share it; a key needs the
 * scope for that. So may an uploader without a signature, if the ACL of the bucket lets everyone
 * write.
 */
function assertMayGrant(call: S3Call, grants: readonly Grant[], owner: AccountName): void {
  const access = accessOf(call);
  assertPublicAllowed(settingsOf(access.bucket).publicAccess, grants);
  const upload = { action: 's3:PutObject', permission: 'storage:append', key: keyOf(call.what) } as const;
  if (call.who.caller.via === 'nobody' && access.decide(upload).reason === 'list') return;
  const isWriters =
    !access.isOwner && call.who.caller.via !== 'nobody' && owner.id === call.who.caller.canonicalId;
  if (isWriters && permits(call.who.caller, 'storage:admin')) return;
  access.assert({ action: 's3:PutObjectAcl', permission: 'storage:admin', key: keyOf(call.what) });
}

/** The ACL as stored in a row; null: owned by the bucket's owner, without other grants. */
export function aclText(
  owner: AccountName,
  grants: readonly Grant[] | undefined,
  bucketOwner: AccountName,
): string | null {
  const own = { ...owner, permission: 'FULL_CONTROL' } as const;
  const isPlain = grants === undefined || isOnly(grants, own);
  if (isPlain && owner.id === bucketOwner.id) return null;
  return JSON.stringify({ ...(owner.id !== bucketOwner.id && { owner }), grants: grants ?? [own] });
}

/** Whether an ACL only grants full control to its owner. */
export function isOnly(grants: readonly Grant[], { id }: AccountName): boolean {
  const [first, ...rest] = grants;
  return (
    rest.length === 0 &&
    first !== undefined &&
    'id' in first &&
    first.id === id &&
    first.permission === 'FULL_CONTROL'
  );
}

export const ACL_MAX_BYTES = 64 * 1024;
const MAX_GRANTS = 100;
const PERMISSIONS: readonly string[] = ['READ', 'WRITE', 'READ_ACP', 'WRITE_ACP', 'FULL_CONTROL'];
const HEADERS: Readonly<Record<string, GrantPermission>> = {
  'x-amz-grant-full-control': 'FULL_CONTROL',
  'x-amz-grant-read': 'READ',
  'x-amz-grant-read-acp': 'READ_ACP',
  'x-amz-grant-write': 'WRITE',
  'x-amz-grant-write-acp': 'WRITE_ACP',
};
const ALL_TO_OWNER = 'bucket-owner-full-control';
/** ACLs that only objects can have, and that only buckets can have. */
const OF_OBJECTS = ['aws-exec-read', 'bucket-owner-read', 'bucket-owner-full-control'];
const OF_BUCKETS = ['log-delivery-write'];

export interface AclPlace {
  readonly level: 'bucket' | 'object';
  /** The owner of the bucket or object that gets the ACL. */
  readonly owner: AccountName;
  readonly bucketOwner: AccountName;
}

/**
 * The ACL in the headers; undefined: there is none. Throws S3Error InvalidArgument, InvalidRequest,
 * UnresolvableGrantByEmailAddress.
 */
export async function headerGrants(
  headers: IncomingHttpHeaders,
  place: AclPlace,
  accounts: AccountDirectory,
): Promise<readonly Grant[] | undefined> {
  const canned = headers['x-amz-acl'];
  // In the order of the request.
  const given = Object.keys(headers).flatMap((name) => {
    const permission = Object.hasOwn(HEADERS, name) ? HEADERS[name] : undefined;
    return permission === undefined ? [] : [[name, permission] as const];
  });
  if (canned !== undefined && given.length > 0) {
    throw new S3Error('InvalidRequest', 'Specifying both Canned ACLs and Header Grants is not allowed');
  }
  if (canned !== undefined) return byName(String(canned), place);
  if (given.length === 0) return undefined;
  const asked = given.flatMap(([name, permission]) =>
    granteesOf(String(headers[name])).map((grantee) => ({ grantee, permission })),
  );
  return resolved(asked, accounts);
}

function byName(name: string, { level, owner, bucketOwner }: AclPlace): readonly Grant[] {
  const isOther = (level === 'bucket' ? OF_OBJECTS : OF_BUCKETS).includes(name);
  const grants = isOther ? undefined : cannedGrants(name, owner, bucketOwner);
  if (grants !== undefined) return grants;
  throw new S3Error('InvalidArgument', undefined, {
    fields: { ArgumentName: 'x-amz-acl', ArgumentValue: name },
  });
}

interface Grantee {
  readonly kind: 'id' | 'uri' | 'emailAddress';
  readonly value: string;
}

interface AskedGrant {
  readonly grantee: Grantee;
  readonly permission: GrantPermission;
}

/** `id="…", uri="…", emailAddress="…"`; quotes may be left out. */
function granteesOf(header: string): Grantee[] {
  return header.split(',').map((part) => {
    const [, kind, quoted, plain] =
      /^\s*(id|uri|emailAddress)\s*=\s*(?:"([^"]*)"|([^"\s]*))\s*$/i.exec(part) ?? [];
    const value = quoted ?? plain ?? '';
    const known = (['id', 'uri', 'emailAddress'] as const).find(
      (each) => each.toLowerCase() === kind?.toLowerCase(),
    );
    if (known === undefined || value === '') {
      throw new S3Error('InvalidArgument', 'Argument format not recognized');
    }
    return { kind: known, value };
  });
}

/** A grant in JSON. */
export interface WrittenGrant {
  /** Canonical id. */
  readonly account?: string;
  readonly group?: Group;
  readonly permission: GrantPermission;
}

/** Throws S3Error InvalidArgument, UnresolvableGrantByEmailAddress. */
export async function writtenGrants(
  written: readonly WrittenGrant[],
  accounts: AccountDirectory,
): Promise<Grant[]> {
  const asked = written.map(({ account = '', group, permission }): AskedGrant => {
    if ((account === '') === (group === undefined)) {
      throw new S3Error('InvalidArgument', 'Each grant names either an account or a group');
    }
    if (group !== undefined) return { grantee: { kind: 'uri', value: GROUP_URIS[group] }, permission };
    return { grantee: { kind: account.includes('@') ? 'emailAddress' : 'id', value: account }, permission };
  });
  return resolved(asked, accounts);
}

async function resolved(asked: readonly AskedGrant[], accounts: AccountDirectory): Promise<Grant[]> {
  if (asked.length > MAX_GRANTS) {
    throw new S3Error('MalformedACLError', `A list can have at most ${MAX_GRANTS} grants`);
  }
  const grants: Grant[] = [];
  for (const { grantee, permission } of asked) {
    grants.push({ ...(await resolve(grantee, accounts)), permission });
  }
  return grants;
}

async function resolve(
  { kind, value }: Grantee,
  accounts: AccountDirectory,
): Promise<AccountName | { readonly group: Group }> {
  const refused = (message: string, name: string) =>
    new S3Error('InvalidArgument', message, { fields: { ArgumentName: name, ArgumentValue: value } });
  if (kind === 'uri') {
    const [group] = Object.entries(GROUP_URIS).find(([, uri]) => uri === value) ?? [];
    if (group === undefined) throw refused('Invalid group uri', 'uri');
    return { group: group as Group };
  }
  // Always refused: the response would reveal whether the address has an account.
  if (kind === 'emailAddress') {
    throw new S3Error('UnresolvableGrantByEmailAddress', undefined, { fields: { EmailAddress: value } });
  }
  const found = await accounts.byCanonicalId(value);
  if (found !== undefined) return { id: found.canonicalId, name: found.username };
  throw refused('Invalid id', 'CanonicalUser/ID');
}

/** The ACL of an `AccessControlPolicy`. Throws S3Error MalformedACLError, AccessDenied (another owner). */
export async function bodyGrants(
  body: Buffer,
  owner: AccountName,
  accounts: AccountDirectory,
): Promise<readonly Grant[]> {
  const root = documentOf(body);
  const list = child(root, 'AccessControlList');
  const given = child(root, 'Owner');
  if (root.name !== 'AccessControlPolicy' || list === undefined || given === undefined) {
    throw new S3Error('MalformedACLError');
  }
  if (textOf(given, 'ID') !== owner.id) throw new S3Error('AccessDenied', 'The owner cannot be changed');
  return resolved(children(list, 'Grant').map(askedGrant), accounts);
}

function documentOf(body: Buffer): XmlElement {
  try {
    return parseXml(body, ACL_MAX_BYTES);
  } catch (error) {
    throw error instanceof S3Error && error.code === 'MalformedXML'
      ? new S3Error('MalformedACLError')
      : error;
  }
}

function askedGrant(grant: XmlElement): AskedGrant {
  const permission = textOf(grant, 'Permission') ?? '';
  const grantee = child(grant, 'Grantee');
  if (!PERMISSIONS.includes(permission) || grantee === undefined) throw new S3Error('MalformedACLError');
  const forms = [
    ['id', 'ID'],
    ['uri', 'URI'],
    ['emailAddress', 'EmailAddress'],
  ] as const;
  for (const [kind, element] of forms) {
    const value = textOf(grantee, element);
    if (value !== undefined) return { grantee: { kind, value }, permission: permission as GrantPermission };
  }
  throw new S3Error('MalformedACLError');
}

const XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"';

export function aclDocument({ owner, grants }: Required<Acl>): string {
  return xmlDocument('AccessControlPolicy', [
    ['Owner', accountNodes(owner)],
    ['AccessControlList', grants.map((grant) => ['Grant', grantNodes(grant)] as const)],
  ]);
}

function grantNodes(grant: Grant): XmlNode {
  const grantee =
    'group' in grant
      ? ([`Grantee ${XSI} xsi:type="Group"`, [['URI', GROUP_URIS[grant.group]]]] as const)
      : ([`Grantee ${XSI} xsi:type="CanonicalUser"`, accountNodes(grant)] as const);
  return [grantee, ['Permission', grant.permission]];
}
