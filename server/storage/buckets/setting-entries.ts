/**
 * The settings of a bucket that are documents: one entry each, with its form in the JSON API and
 * its value in a restored bucket. Add new settings here; `s3/settings/` and the console need an
 * entry too.
 */
import { namedObject, type Static, type TSchema, Type } from '../../platform/json/json-schema.ts';
import type { LifecycleRule } from '../lifecycle/lifecycle-rules.ts';
import type { LeftOut } from '../schema.ts';
import type { BucketSettings, Grant, PublicAccess, SettingName, SettingsChange } from './bucket-settings.ts';

const Tags = Type.Record(Type.String(), Type.String(), {
  description: 'At most 50',
  examples: [{ team: 'photos' }],
});

const CorsRule = namedObject('BucketCorsRule', {
  id: Type.Optional(Type.String()),
  origins: Type.Array(Type.String(), {
    minItems: 1,
    description: 'Allowed origins, each with at most one `*`',
  }),
  methods: Type.Array(Type.String(), { minItems: 1, description: '`GET`, `HEAD`, `PUT`, `POST`, `DELETE`' }),
  headers: Type.Optional(Type.Array(Type.String(), { description: 'Headers that scripts may send' })),
  exposed_headers: Type.Optional(
    Type.Array(Type.String(), { description: 'Response headers that scripts may read' }),
  ),
  max_age_seconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 999_999_999 })),
});

const Cors = Type.Array(CorsRule, {
  minItems: 1,
  description: 'Origins whose pages may access the bucket; the first matching rule applies',
});

const LifecycleRuleShape = namedObject('BucketLifecycleRule', {
  id: Type.Optional(Type.String({ maxLength: 255 })),
  enabled: Type.Boolean(),
  prefix: Type.Optional(Type.String()),
  tags: Type.Optional(Type.Record(Type.String(), Type.String())),
  larger_than: Type.Optional(Type.Integer({ description: 'Bytes' })),
  smaller_than: Type.Optional(Type.Integer({ description: 'Bytes' })),
  days: Type.Optional(Type.Integer({ description: 'Age of the current version, days' })),
  date: Type.Optional(
    Type.String({
      description: 'Date from which objects are removed, instead of days',
      examples: ['2027-01-31'],
    }),
  ),
  markers: Type.Optional(
    Type.Boolean({ description: 'Remove delete markers without versions, instead of days' }),
  ),
  noncurrent_days: Type.Optional(Type.Integer({ description: 'Days after a version was replaced' })),
  noncurrent_kept: Type.Optional(Type.Integer({ description: 'Number of older versions that are kept' })),
  abort_days: Type.Optional(Type.Integer({ description: 'Age of uploads in progress, days' })),
});

export const LifecycleShape = Type.Array(LifecycleRuleShape, {
  minItems: 1,
  maxItems: 1000,
  description: 'Rules that remove objects; the earliest date applies',
});

const Lock = namedObject('BucketLock', {
  default: Type.Union(
    [
      namedObject('BucketLockDefault', {
        mode: Type.Union([Type.Literal('GOVERNANCE'), Type.Literal('COMPLIANCE')]),
        days: Type.Optional(Type.Integer({ description: 'Retention in days; or `years`' })),
        years: Type.Optional(Type.Integer()),
      }),
      Type.Null(),
    ],
    { description: 'Default retention of new versions; null: none' },
  ),
});

const Policy = Type.Record(Type.String(), Type.Unknown(), {
  description: 'An AWS bucket policy, as a JSON document of at most 20 KiB',
});

const PublicAccessShape = namedObject('BucketPublicAccess', {
  block_acls: Type.Boolean({ description: 'Refuses new public access control lists' }),
  ignore_acls: Type.Boolean({ description: 'Ignores public grants of access control lists' }),
  block_policy: Type.Boolean({ description: 'Refuses new public policies' }),
  restrict: Type.Boolean({ description: 'Ignores public policies' }),
});

const OwnershipShape = Type.Enum(['BucketOwnerEnforced', 'BucketOwnerPreferred', 'ObjectWriter'] as const, {
  description: '`BucketOwnerEnforced` disables access control lists',
});

const GrantShape = namedObject('BucketGrant', {
  account: Type.Optional(Type.String({ description: 'Canonical id of the account' })),
  account_name: Type.Optional(Type.String({ description: 'Display name; read-only' })),
  group: Type.Optional(
    Type.Enum(['all', 'authenticated', 'logs'] as const, {
      description: 'Group instead of an account: everyone, every account, or the log writer',
    }),
  ),
  permission: Type.Enum(['READ', 'WRITE', 'READ_ACP', 'WRITE_ACP', 'FULL_CONTROL'] as const),
});
export type BucketGrant = Static<typeof GrantShape>;

const AclShape = Type.Array(GrantShape, {
  minItems: 1,
  maxItems: 99,
  description: "The access control list, without the owner's own entry",
});

/** Facts of a restore with its history, for each setting. */
export interface Restoring {
  /** The settings in the recovery point. */
  readonly then: BucketSettings;
  readonly from: string;
  readonly to: string;
  /** Whether the caller may restore access of other accounts. */
  readonly mayShare: boolean;
  readonly hasKey: (keyId: string) => Promise<boolean>;
  /** Records what could not be restored unchanged. */
  readonly leave: (what: LeftOut['what'], reason: string, count?: number) => void;
}

type Value<N extends keyof BucketSettings> = NonNullable<BucketSettings[N]>;
type Restore<N extends keyof BucketSettings> = (
  value: Value<N> | undefined,
  restoring: Restoring,
) => Value<N> | undefined | Promise<Value<N> | undefined>;

interface Entry<N extends SettingName, S extends TSchema> {
  /** Schema of the setting in the JSON API, where null means not set. */
  readonly schema: S;
  /** Converts the value of the JSON API, unchecked. Null: `s3/` converts it, because it names accounts. */
  readonly stored: N extends 'acl' | 'policy' ? null : (value: Static<S>) => Value<N>;
  /** Converts the stored value for the JSON API. `owner`: canonical id. */
  readonly shown: (value: Value<N>, owner: string) => Static<S> | null;
  /** The value in a restored bucket; undefined: not set. */
  readonly restored: Restore<N>;
}

const entry = <N extends SettingName, S extends TSchema>(setting: N, how: Entry<N, S>) => ({
  setting,
  ...how,
});
const asItWas = <T>(value: T): T => value;

const CLOSED: PublicAccess = { blockAcls: true, ignoreAcls: true, blockPolicy: true, restrict: true };

/** By name. `namedKey` is missing because it belongs to the bucket's encryption. */
const ENTRIES = {
  acl: entry('acl', {
    schema: AclShape,
    stored: null,
    shown: (acl, owner) => {
      const toOthers = acl.filter((grant) => !('id' in grant) || grant.id !== owner);
      return toOthers.length === 0 ? null : toOthers.map(grantShown);
    },
    restored: (acl, { mayShare }) => (mayShare ? acl : undefined),
  }),
  cors: entry('cors', {
    schema: Cors,
    stored: (rules) =>
      rules.map(({ headers = [], exposed_headers: exposed = [], max_age_seconds, ...rule }) => ({
        ...rule,
        headers,
        exposed,
        ...(max_age_seconds !== undefined && { maxAgeSeconds: max_age_seconds }),
      })),
    shown: (rules) =>
      rules.map(({ origins, methods, headers, exposed, maxAgeSeconds, ...rule }) => ({
        ...rule,
        origins: [...origins],
        methods: [...methods],
        headers: [...headers],
        exposed_headers: [...exposed],
        ...(maxAgeSeconds !== undefined && { max_age_seconds: maxAgeSeconds }),
      })),
    restored: asItWas,
  }),
  dataEvents: entry('dataEvents', {
    schema: Type.Enum(['writes', 'all'] as const, {
      description:
        'Objects that are written and deleted have entries in the audit log; `all`: downloads too. Very frequent ones ' +
        'are counted',
    }),
    stored: asItWas,
    shown: asItWas,
    restored: asItWas,
  }),
  lifecycle: entry('lifecycle', {
    schema: LifecycleShape,
    stored: (rules) => ({ rules: rules.map(ruleFrom) }),
    shown: ({ rules }) => rules.map(ruleShown),
    restored: (lifecycle, { leave }) => {
      if (lifecycle === undefined) return undefined;
      const rules = lifecycle.rules.map((rule) => ({ ...rule, isEnabled: false }));
      const why = 'The lifecycle rules are disabled, because they would remove restored objects';
      leave('lifecycle', why, rules.length);
      return { ...lifecycle, rules };
    },
  }),
  lock: entry('lock', {
    schema: Lock,
    stored: ({ default: byDefault }) => (byDefault === null ? {} : { byDefault }),
    shown: ({ byDefault = null }) => ({ default: byDefault }),
    restored: asItWas,
  }),
  ownership: entry('ownership', {
    schema: OwnershipShape,
    stored: asItWas,
    shown: asItWas,
    restored: asItWas,
  }),
  policy: entry('policy', {
    schema: Policy,
    stored: null,
    shown: ({ text }) => JSON.parse(text) as Record<string, unknown>,
    restored: (policy, { then, mayShare, from, to, leave }) => {
      const isLost = !mayShare && (policy ?? then.acl) !== undefined;
      if (isLost)
        leave('policy', "Restoring other accounts' access requires storage:admin and the same account");
      if (!mayShare || policy === undefined) return undefined;
      if (from === to) return policy;
      leave('policy', `The bucket policy names the bucket ${from}: set one for ${to}`);
      return undefined;
    },
  }),
  publicAccess: entry('publicAccess', {
    schema: PublicAccessShape,
    stored: ({ block_acls, ignore_acls, block_policy, restrict }) => ({
      blockAcls: block_acls,
      ignoreAcls: ignore_acls,
      blockPolicy: block_policy,
      restrict,
    }),
    shown: ({ blockAcls, ignoreAcls, blockPolicy, restrict }) => ({
      block_acls: blockAcls,
      ignore_acls: ignoreAcls,
      block_policy: blockPolicy,
      restrict,
    }),
    restored: (was, { leave }) => {
      const isOpen = was === undefined || Object.values(was).includes(false);
      if (isOpen) leave('public_access', 'Access for everyone is blocked until you allow it again');
      return CLOSED;
    },
  }),
  tags: entry('tags', { schema: Tags, stored: asItWas, shown: asItWas, restored: asItWas }),
} as const satisfies { readonly [N in SettingName]: { readonly setting: N } };

type Entries = typeof ENTRIES;
/** The member of the JSON API: `publicAccess` is `public_access`. */
type Member<N extends string> = N extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${Member<Rest>}`
  : '';
type Json<N extends SettingName> = Static<Entries[N]['schema']>;

export const SETTING_NAMES = Object.keys(ENTRIES) as SettingName[];
export const memberOf = <N extends SettingName>(name: N) =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`) as Member<N>;

export type BucketSettingsShown = { [N in SettingName as Member<N>]: Json<N> | null };
const orNull = (name: SettingName) =>
  Type.Union([ENTRIES[name].schema, Type.Null({ description: 'Setting that is not set' })]);
const membersOf = (schemaOf: (name: SettingName) => TSchema) =>
  Object.fromEntries(SETTING_NAMES.map((name) => [memberOf(name), schemaOf(name)]));
export const BucketSettingsShown = Type.Unsafe<BucketSettingsShown>(
  namedObject('BucketSettings', membersOf(orNull)),
);

export type BucketSettingsChange = Partial<BucketSettingsShown>;
export const BucketSettingsChange = Type.Unsafe<BucketSettingsChange>(
  namedObject(
    'BucketSettingsChange',
    membersOf((name) => Type.Optional(orNull(name))),
  ),
);

/** `owner`: canonical id. */
export function shown(settings: BucketSettings, owner: string): BucketSettingsShown {
  const members = SETTING_NAMES.map((name) => {
    const value = settings[name];
    return [memberOf(name), value === undefined ? null : ENTRIES[name].shown(value as never, owner)];
  });
  return Object.fromEntries(members) as BucketSettingsShown;
}

/** Settings whose JSON has the members of S3's XML. */
export type PlainName = Exclude<SettingName, 'acl' | 'policy'>;
export const isPlain = (name: SettingName): name is PlainName => ENTRIES[name].stored !== null;

/** Converts a value of the JSON API, unchecked. */
export function storedOf<N extends PlainName>(name: N, value: unknown): Value<N> {
  return ENTRIES[name].stored(value as never) as Value<N>;
}

const RESTORED = {
  ...ENTRIES,
  namedKey: {
    restored: async (namedKey: Value<'namedKey'> | undefined, { hasKey, leave }: Restoring) => {
      if (namedKey === undefined || (await hasKey(namedKey.keyId))) return namedKey;
      const why = `The account has no encryption key ${namedKey.keyId}, so new objects use the default encryption`;
      leave('encryption_key', why);
      return undefined;
    },
  },
} satisfies { readonly [N in keyof Required<BucketSettings>]: { readonly restored: Restore<N> } };

/** The settings of a bucket that is restored with its history: never more public than before. */
export async function restoredSettings(restoring: Restoring): Promise<SettingsChange> {
  const found: [string, unknown][] = [];
  for (const name of Object.keys(RESTORED) as (keyof typeof RESTORED)[]) {
    found.push([name, await RESTORED[name].restored(restoring.then[name] as never, restoring)]);
  }
  return Object.fromEntries(found);
}

type RuleShown = Static<typeof LifecycleRuleShape>;

function ruleFrom({ id = '', enabled, prefix, tags, date, ...rule }: RuleShown): LifecycleRule {
  const { larger_than, smaller_than, days, markers, noncurrent_days, noncurrent_kept, abort_days } = rule;
  const count = Number(prefix !== undefined) + Object.keys(tags ?? {}).length;
  const sizes = Number(larger_than !== undefined) + Number(smaller_than !== undefined);
  return withoutAbsent({
    id,
    isEnabled: enabled,
    form: count + sizes > 1 ? 'and' : 'filter',
    prefix,
    tags,
    largerThan: larger_than,
    smallerThan: smaller_than,
    days,
    date: date === undefined ? undefined : Date.parse(date),
    expiresMarkers: markers,
    noncurrentDays: noncurrent_days,
    newerNoncurrent: noncurrent_kept,
    abortDays: abort_days,
  }) as LifecycleRule;
}

function ruleShown({
  id,
  isEnabled,
  prefix,
  tags,
  largerThan,
  smallerThan,
  date,
  ...rule
}: LifecycleRule): RuleShown {
  return withoutAbsent({
    id,
    enabled: isEnabled,
    prefix,
    tags,
    larger_than: largerThan,
    smaller_than: smallerThan,
    days: rule.days,
    date: date === undefined ? undefined : new Date(date).toISOString().slice(0, 10),
    markers: rule.expiresMarkers,
    noncurrent_days: rule.noncurrentDays,
    noncurrent_kept: rule.newerNoncurrent,
    abort_days: rule.abortDays,
  }) as RuleShown;
}

function withoutAbsent(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function grantShown({ permission, ...grantee }: Grant): BucketGrant {
  if ('group' in grantee) return { group: grantee.group, permission };
  return { account: grantee.id, account_name: grantee.name, permission };
}
