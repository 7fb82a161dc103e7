/**
 * Makes JSON Schemas, with TypeBox's types. TypeBox's own builders make the same and load 373 files, which is
 * 5 MB of memory and a tenth of every start.
 */
import type { Type as Builders, Static, TSchema } from 'typebox';

export type { Static, TSchema };

type Schema = Readonly<Record<string, unknown>>;

/** On a schema that Object() does not require; not enumerable, so that no document shows it. */
const OPTIONAL = '~optional';

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
    patternProperties: { [String(name['pattern'] ?? '^.*$')]: value },
    ...options,
  }),
  Optional: (schema: Schema) => Object.defineProperty({ ...schema }, OPTIONAL, { value: true }),
  Unsafe: (schema: Schema) => schema,
};

export const Type = builders as unknown as Pick<typeof Builders, keyof typeof builders>;
