/** Index specifications of `createIndexes`. */
import type { Document } from 'bson';
import { CommandError } from '../command-error.ts';
import { compileFilter } from '../query/filter.ts';
import type { Collection } from '../storage/documents-store.ts';
import { readTextSpec } from '../text/text-index.ts';
import type { Collation } from '../values/collations.ts';
import { isDocument } from '../values/field-paths.ts';
import { isNumber, plainNumber } from '../values/numbers.ts';
import { assertWildcard } from '../wildcard/wildcard-index.ts';
import { collationOf } from './command-scope.ts';

const MAX_INDEX_FIELDS = 32;
/** Accepted options of an index, besides its key and name. */
const INDEX_OPTIONS = new Set(
  'v key name unique sparse partialFilterExpression expireAfterSeconds background collation hidden ns'.split(
    ' ',
  ),
);
/** Special kinds of indexes. */
const SPECIAL_INDEXES = new Set(['2dsphere', '2d', 'hashed', 'text']);
/** Options of the indexes; versions are shown like a server's. */
const SPECIAL_OPTIONS = new Set(
  (
    '2dsphereIndexVersion bits min max hashedIndexVersion textIndexVersion weights default_language ' +
    'language_override wildcardProjection'
  ).split(' '),
);

const refuse = (why: string) => new CommandError('CannotCreateIndex', why);

/** Throws CommandError for combinations that a server refuses. */
function assertSpecial({ key, unique, bits, min, max }: Document, collation: Collation | null): void {
  const kinds = Object.values(key).filter((kind) => typeof kind === 'string');
  if (kinds.length === 0) return;
  const different = new Set(kinds);
  if (different.size > 1) throw refuse(`Can't use more than one index plugin for a single index.`);
  if (kinds.length > 1 && !different.has('2dsphere') && !different.has('text'))
    throw new CommandError(31303, `A maximum of one index field is allowed to be ${kinds[0]}`);
  if (different.has('hashed') && unique)
    throw new CommandError(
      16764,
      'Currently hashed indexes cannot guarantee uniqueness. Use a regular index.',
    );
  if (different.has('2d') && Object.values(key)[0] !== '2d')
    throw new CommandError(16801, '2d has to be first in index');
  const plane = different.has('2d') ? '2d' : different.has('text') ? 'text' : null;
  if (plane !== null && collation !== null)
    throw refuse(`Index type '${plane}' does not support collation; give it { locale: 'simple' }`);
  const [low, high, count] = [min ?? -180, max ?? 180, bits ?? 26].map(plainNumber) as [
    number,
    number,
    number,
  ];
  if (!(low < high) || !(count >= 1 && count <= 32) || !Number.isInteger(count))
    throw new CommandError('InvalidOptions', 'min must be below max, and bits from 1 to 32');
}

export function readSpec(asked: unknown, collection: Collection): Document {
  if (!isDocument(asked) || !isDocument(asked.key))
    throw new CommandError('FailedToParse', "An index specification needs the field 'key'");
  const { ns: _ns, background: _background, collation: _collation, ...spec } = asked;
  const collation = collationOf(asked, collection);
  const fields = Object.entries(asked.key);
  if (fields.length === 0 || fields.length > MAX_INDEX_FIELDS)
    throw refuse(`Index keys must have 1 to ${MAX_INDEX_FIELDS} fields`);
  for (const [path, direction] of fields) {
    if (typeof direction === 'string' && !SPECIAL_INDEXES.has(direction))
      throw refuse(`Index type '${direction}' is not supported by this engine`);
    const isField =
      typeof direction === 'string' || Math.abs(isNumber(direction) ? plainNumber(direction) : 0) > 0;
    if (!isField || path.split('.').includes(''))
      throw refuse(`Values of an index key must be numbers above or below 0: ${path}`);
  }
  assertWildcard(asked);
  assertSpecial(asked, collation);
  const unknown = Object.keys(asked).find((name) => !INDEX_OPTIONS.has(name) && !SPECIAL_OPTIONS.has(name));
  if (unknown !== undefined)
    throw new CommandError(197, `The field '${unknown}' is not valid for an index of this engine`);
  if (spec.partialFilterExpression !== undefined) compileFilter(spec.partialFilterExpression, { collation });
  assertExpiry({ ...spec, key: asked.key });
  const name =
    spec.name ??
    fields.map(([path, kind]) => `${path}_${typeof kind === 'string' ? kind : plainNumber(kind)}`).join('_');
  const isText = Object.values(asked.key).includes('text');
  const whole = isText ? readTextSpec(spec) : spec;
  return { v: 2, ...whole, name, ...(collation === null ? {} : { collation: collation.spec }) };
}

export function assertExpiry({ key, expireAfterSeconds: seconds }: Document): void {
  if (seconds === undefined) return;
  if (plainNumber(seconds) >= 0 && Object.keys(key).length === 1) return;
  const why = 'expireAfterSeconds must not be negative, and is for indexes of one field';
  throw new CommandError('CannotCreateIndex', why);
}
