/** The settings of a bucket in the form of the JSON API. */
import { namedObject, type Static, Type } from '../platform/json-schema.ts';
import type { BucketSettings, SettingName } from '../storage/bucket-settings.ts';

const Tags = Type.Record(Type.String(), Type.String(), {
  description: 'At most 50, of names of up to 128 characters and values of up to 256',
  examples: [{ team: 'photos' }],
});

const CorsRule = namedObject('BucketCorsRule', {
  id: Type.Optional(Type.String()),
  origins: Type.Array(Type.String(), { minItems: 1, description: 'With at most one `*` each' }),
  methods: Type.Array(Type.String(), { minItems: 1, description: '`GET`, `HEAD`, `PUT`, `POST`, `DELETE`' }),
  headers: Type.Optional(Type.Array(Type.String(), { description: 'Headers that scripts may send' })),
  exposed_headers: Type.Optional(Type.Array(Type.String(), { description: 'Headers that they may read' })),
  max_age_seconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 999_999_999 })),
});

const Cors = Type.Array(CorsRule, {
  minItems: 1,
  description:
    'Pages of other origins that may reach the bucket; at most 100 rules, the first that fits counts',
});

const Lock = namedObject('BucketLock', {
  default: Type.Union(
    [
      namedObject('BucketLockDefault', {
        mode: Type.Union([Type.Literal('GOVERNANCE'), Type.Literal('COMPLIANCE')]),
        days: Type.Optional(Type.Integer({ description: 'Or `years`' })),
        years: Type.Optional(Type.Integer()),
      }),
      Type.Null(),
    ],
    { description: 'The retention of new versions that bring none; null: none' },
  ),
});

const SCHEMAS = { cors: Cors, lock: Lock, tags: Tags };

/** Access to a bucket is not among them: it has checks that need the account. */
export type JsonSettingName = Exclude<SettingName, 'acl' | 'ownership' | 'policy' | 'publicAccess'>;

const orNull = <S extends (typeof SCHEMAS)[JsonSettingName]>(schema: S) =>
  Type.Union([schema, Type.Null({ description: 'Not set' })]);

export const BucketSettingsShown = namedObject('BucketSettings', {
  cors: orNull(Cors),
  lock: orNull(Lock),
  tags: orNull(Tags),
});
export type BucketSettingsShown = Static<typeof BucketSettingsShown>;

export const BucketSettingsChange = namedObject('BucketSettingsChange', {
  cors: Type.Optional(orNull(Cors)),
  lock: Type.Optional(orNull(Lock)),
  tags: Type.Optional(orNull(Tags)),
});
export type BucketSettingsChange = Static<typeof BucketSettingsChange>;

/** From the form of the API to the stored one; what they give is not checked yet. */
export const READERS: {
  readonly [N in JsonSettingName]: (
    value: NonNullable<BucketSettingsShown[N]>,
  ) => NonNullable<BucketSettings[N]>;
} = {
  cors: (rules) =>
    rules.map(({ headers = [], exposed_headers: exposed = [], max_age_seconds, ...rule }) => ({
      ...rule,
      headers,
      exposed,
      ...(max_age_seconds !== undefined && { maxAgeSeconds: max_age_seconds }),
    })),
  lock: ({ default: byDefault }) => (byDefault === null ? {} : { byDefault }),
  tags: (tags) => tags,
};

export function shown({ cors, lock, tags }: BucketSettings): BucketSettingsShown {
  const rules = cors?.map(({ origins, methods, headers, exposed, maxAgeSeconds, ...rule }) => ({
    ...rule,
    origins: [...origins],
    methods: [...methods],
    headers: [...headers],
    exposed_headers: [...exposed],
    ...(maxAgeSeconds !== undefined && { max_age_seconds: maxAgeSeconds }),
  }));
  const locked = lock === undefined ? null : { default: lock.byDefault ?? null };
  return { cors: rules ?? null, lock: locked, tags: tags ?? null };
}
