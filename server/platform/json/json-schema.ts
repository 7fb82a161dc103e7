/**
 * Builds JSON Schemas, with TypeBox's types. TypeBox's own builders do the same but load 373 files, which is
 * 5 MB of memory and a tenth of every start.
 */
import type { Type as Builders, Static, TObject, TProperties, TSchema } from 'typebox';

export type { Static, TSchema };

type Schema = Readonly<Record<string, unknown>>;

/** Marks an optional member; not enumerable, so that no document shows it. */
const OPTIONAL = '~optional';

/** The description under which openapi.json lists it. */
export const SHARED_DESCRIPTION = '~description';

const of = (type: string) => (options?: Schema) => ({ type, ...options });

function requiredOf(properties: Readonly<Record<string, Schema>>): Schema {
  const required = Object.keys(properties).filter((name) => !(OPTIONAL in (properties[name] as Schema)));
  return required.length === 0 ? {} : { required };
}

const builders = {
  String: of('string'),
  Integer: of('integer'),
  Number: of('number'),
  Boolean: of('boolean'),
  Null: of('null'),
  Unknown: (options?: Schema) => ({ ...options }),
  Literal: (value: unknown, options?: Schema) => ({ type: typeof value, const: value, ...options }),
  Enum: (values: readonly unknown[], options?: Schema) => ({ enum: values, ...options }),
  Union: (anyOf: readonly Schema[], options?: Schema) => ({ anyOf, ...options }),
  Array: (items: Schema, options?: Schema) => ({ type: 'array', items, ...options }),
  Object: (properties: Readonly<Record<string, Schema>>, options?: Schema) => ({
    type: 'object',
    ...requiredOf(properties),
    properties,
    ...options,
  }),
  Record: (name: Schema, value: Schema, options?: Schema) => ({
    type: 'object',
    patternProperties: { [String(name.pattern ?? '^.*$')]: value },
    ...options,
  }),
  Optional: (schema: Schema) => Object.defineProperty({ ...schema }, OPTIONAL, { value: true }),
  Unsafe: (schema: Schema) => schema,
};

export const Type = builders as unknown as Pick<typeof Builders, keyof typeof builders>;

/** A named schema with a different description at this use. */
export function describedAs<S extends TSchema>(schema: S, description: string): S {
  const shared = (schema as Schema).description;
  return { ...schema, description, [SHARED_DESCRIPTION]: shared };
}

/** An object that openapi.json lists under this name, which must be unique. */
export function namedObject<P extends TProperties>(name: string, members: P, options?: Schema): TObject<P> {
  return Type.Object(members, { ...options, $id: name });
}

/** A text or null. */
export function textOrNull(description?: string) {
  return Type.Union([Type.String(), Type.Null()], description === undefined ? undefined : { description });
}
