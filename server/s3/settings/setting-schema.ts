/** The settings of a bucket in the form of the JSON API. */
import { namedObject, type Static, Type } from '../../platform/json/json-schema.ts';
import type {
  BucketSettings,
  Grant,
  PublicAccess,
  SettingName,
} from '../../storage/buckets/bucket-settings.ts';
import type { LifecycleRule } from '../../storage/lifecycle/lifecycle-rules.ts';

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
  description: "A policy as AWS' documents have it, of at most 20 KiB",
});

const PublicAccessShape = namedObject('BucketPublicAccess', {
  block_acls: Type.Boolean({ description: 'Refuses new public access control lists' }),
  ignore_acls: Type.Boolean({ description: 'Ignores public grants of access control lists' }),
  block_policy: Type.Boolean({ description: 'Refuses new public policies' }),
  restrict: Type.Boolean({ description: 'Ignores public policies' }),
});

const OwnershipShape = Type.Enum(['BucketOwnerEnforced', 'BucketOwnerPreferred', 'ObjectWriter'] as const, {
  description: '`BucketOwnerEnforced` ends access control lists',
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

const SCHEMAS = {
  acl: AclShape,
  cors: Cors,
  lifecycle: LifecycleShape,
  lock: Lock,
  ownership: OwnershipShape,
  policy: Policy,
  public_access: PublicAccessShape,
  tags: Tags,
};

const orNull = <S extends (typeof SCHEMAS)[keyof typeof SCHEMAS]>(schema: S) =>
  Type.Union([schema, Type.Null({ description: 'Setting that is not set' })]);

export const BucketSettingsShown = namedObject('BucketSettings', {
  acl: orNull(AclShape),
  cors: orNull(Cors),
  lifecycle: orNull(LifecycleShape),
  lock: orNull(Lock),
  ownership: orNull(OwnershipShape),
  policy: orNull(Policy),
  public_access: orNull(PublicAccessShape),
  tags: orNull(Tags),
});
export type BucketSettingsShown = Static<typeof BucketSettingsShown>;

export const BucketSettingsChange = namedObject('BucketSettingsChange', {
  acl: Type.Optional(orNull(AclShape)),
  cors: Type.Optional(orNull(Cors)),
  lifecycle: Type.Optional(orNull(LifecycleShape)),
  lock: Type.Optional(orNull(Lock)),
  ownership: Type.Optional(orNull(OwnershipShape)),
  policy: Type.Optional(orNull(Policy)),
  public_access: Type.Optional(orNull(PublicAccessShape)),
  tags: Type.Optional(orNull(Tags)),
});
export type BucketSettingsChange = Static<typeof BucketSettingsChange>;

/** Members of the API by settings that have a document of their own; policies and lists are read apart. */
export const MEMBERS = {
  cors: 'cors',
  lifecycle: 'lifecycle',
  lock: 'lock',
  ownership: 'ownership',
  publicAccess: 'public_access',
  tags: 'tags',
} as const satisfies Record<Exclude<SettingName, 'acl' | 'policy'>, keyof BucketSettingsShown>;

export type JsonSettingName = keyof typeof MEMBERS;

/** From the form of the API to the stored one; what they give is not checked yet. */
export const READERS: {
  readonly [N in JsonSettingName]: (
    value: NonNullable<BucketSettingsShown[(typeof MEMBERS)[N]]>,
  ) => NonNullable<BucketSettings[N]>;
} = {
  cors: (rules) =>
    rules.map(({ headers = [], exposed_headers: exposed = [], max_age_seconds, ...rule }) => ({
      ...rule,
      headers,
      exposed,
      ...(max_age_seconds !== undefined && { maxAgeSeconds: max_age_seconds }),
    })),
  lifecycle: (rules) => ({ rules: rules.map(ruleFrom) }),
  lock: ({ default: byDefault }) => (byDefault === null ? {} : { byDefault }),
  ownership: (ownership) => ownership,
  publicAccess: ({ block_acls, ignore_acls, block_policy, restrict }) => ({
    blockAcls: block_acls,
    ignoreAcls: ignore_acls,
    blockPolicy: block_policy,
    restrict,
  }),
  tags: (tags) => tags,
};

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

/** `owner`: canonical id. */
export function shown(
  { cors, lifecycle, lock, tags, acl = [], ...access }: BucketSettings,
  owner: string,
): BucketSettingsShown {
  const rules = cors?.map(({ origins, methods, headers, exposed, maxAgeSeconds, ...rule }) => ({
    ...rule,
    origins: [...origins],
    methods: [...methods],
    headers: [...headers],
    exposed_headers: [...exposed],
    ...(maxAgeSeconds !== undefined && { max_age_seconds: maxAgeSeconds }),
  }));
  const locked = lock === undefined ? null : { default: lock.byDefault ?? null };
  const expiring = lifecycle === undefined ? null : lifecycle.rules.map(ruleShown);
  const { ownership = null, policy, publicAccess } = access;
  const toOthers = acl.filter((grant) => !('id' in grant) || grant.id !== owner);
  return {
    acl: toOthers.length === 0 ? null : toOthers.map(grantShown),
    cors: rules ?? null,
    lifecycle: expiring,
    lock: locked,
    ownership,
    policy: policy === undefined ? null : (JSON.parse(policy.text) as Record<string, unknown>),
    public_access: publicAccess === undefined ? null : switchesShown(publicAccess),
    tags: tags ?? null,
  };
}

function grantShown({ permission, ...grantee }: Grant): BucketGrant {
  if ('group' in grantee) return { group: grantee.group, permission };
  return { account: grantee.id, account_name: grantee.name, permission };
}

function switchesShown({ blockAcls, ignoreAcls, blockPolicy, restrict }: PublicAccess) {
  return {
    block_acls: blockAcls,
    ignore_acls: ignoreAcls,
    block_policy: blockPolicy,
    restrict,
  };
}
