/**
 * S3 settings of a bucket. They are read with the bucket's row, so that they cost no extra read.
 */
import type { Lifecycle } from '../lifecycle/lifecycle-rules.ts';
import type { DefaultRetention, LockMode } from '../objects/object-lock.ts';

/** A permission for scripts of other origins; patterns contain at most one `*`. */
export interface CorsRule {
  readonly id?: string;
  readonly origins: readonly string[];
  readonly methods: readonly string[];
  /** Allowed request headers. */
  readonly headers: readonly string[];
  /** Readable response headers. */
  readonly exposed: readonly string[];
  readonly maxAgeSeconds?: number;
}

/** The retention period in the unit that the client used, days or years. */
export interface ObjectLockDefault {
  readonly mode: LockMode;
  readonly days?: number;
  readonly years?: number;
}

/** Permissions that an access control list grants. */
export type GrantPermission = 'READ' | 'WRITE' | 'READ_ACP' | 'WRITE_ACP' | 'FULL_CONTROL';

/** An account as other accounts see it. */
export interface AccountName {
  /** Its canonical id. */
  readonly id: string;
  readonly name: string;
}

/** An account, or a group: everyone, everyone with credentials, the log delivery. */
export type Grant = { readonly permission: GrantPermission } & (
  | AccountName
  | { readonly group: 'all' | 'authenticated' | 'logs' }
);

/** The access control list of an object. */
export interface Acl {
  /** Default: the bucket's. */
  readonly owner?: AccountName;
  readonly grants: readonly Grant[];
}

/** Ownership of objects that other accounts upload; `BucketOwnerEnforced` disables access control lists. */
export type Ownership = 'BucketOwnerEnforced' | 'BucketOwnerPreferred' | 'ObjectWriter';

/** Four switches; while one is true, such grants are refused or ignored. */
export interface PublicAccess {
  /** New access control lists that grant to everyone. */
  readonly blockAcls: boolean;
  /** Grants to everyone in access control lists. */
  readonly ignoreAcls: boolean;
  /** New policies that grant to everyone. */
  readonly blockPolicy: boolean;
  /** Blocks access of other accounts through a policy that grants access to everyone. */
  readonly restrict: boolean;
}

export interface BucketPolicy {
  /** The text as sent. */
  readonly text: string;
  /** Canonical ids of the accounts in the policy, by the names used in the policy. */
  readonly principals: Readonly<Record<string, string>>;
  /** The owner confirmed that the policy may exclude the owner's own keys. */
  readonly holdsForOwner?: true;
}

/** Settings by name, in the form used at run time; absent: not set. */
export interface BucketSettings {
  readonly cors?: readonly CorsRule[];
  readonly lifecycle?: Lifecycle;
  /** Object lock is enabled; it cannot be disabled. */
  readonly lock?: { readonly byDefault?: ObjectLockDefault };
  readonly policy?: BucketPolicy;
  readonly publicAccess?: PublicAccess;
  readonly ownership?: Ownership;
  /** The access control list of the bucket; absent: only the owner. */
  readonly acl?: readonly Grant[];
  readonly tags?: Readonly<Record<string, string>>;
  /** Whether writes, or downloads too, have entries in the audit log. */
  readonly dataEvents?: 'writes' | 'all';
  /** The named key that encrypts uploads, if the bucket encrypts them. */
  readonly namedKey?: { readonly keyId: string; readonly bucketKey: boolean };
}

/** Each is a document that clients replace as a whole. The named key belongs to the bucket's encryption. */
export type SettingName = Exclude<keyof BucketSettings, 'namedKey'>;

/** Settings to replace; undefined removes one. */
export type SettingsChange = { readonly [N in keyof BucketSettings]?: BucketSettings[N] | undefined };

/** Recently parsed settings, most recent last, bounded by their total length. */
const parsed = new Map<string, BucketSettings>();
const KEPT_CHARACTERS = 4 * 2 ** 20;
let keptCharacters = 0;
const NONE: BucketSettings = {};

export function settingsOf({ settings }: { readonly settings: string | null }): BucketSettings {
  if (settings === null) return NONE;
  const known = parsed.get(settings);
  if (known !== undefined) return known;
  const document = JSON.parse(settings) as BucketSettings;
  keptCharacters += settings.length;
  parsed.set(settings, document);
  for (const oldest of parsed.keys()) {
    if (keptCharacters <= KEPT_CHARACTERS) break;
    keptCharacters -= oldest.length;
    parsed.delete(oldest);
  }
  return document;
}

/** The JSON for the row after changing some settings; undefined removes one. */
export function withSettings(
  row: { readonly settings: string | null },
  changed: SettingsChange,
): string | null {
  return settingsText({ ...settingsOf(row), ...changed });
}

/** The text for the row; null if nothing is set. */
export function settingsText(settings: SettingsChange): string | null {
  const text = JSON.stringify(settings);
  return text === '{}' ? null : text;
}

const YEAR_DAYS = 365;

/** The retention of new versions; undefined: none. */
export function defaultRetention(bucket: { readonly settings: string | null }): DefaultRetention | undefined {
  const byDefault = settingsOf(bucket).lock?.byDefault;
  if (byDefault === undefined) return undefined;
  const { mode, days, years = 0 } = byDefault;
  return { mode, days: days ?? years * YEAR_DAYS };
}
