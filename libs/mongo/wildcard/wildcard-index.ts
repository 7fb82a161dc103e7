/**
 * Wildcard indexes: `{ "$**": 1 }` contains each value of each field, `{ "a.$**": 1 }` those below
 * `a`. A key is the path of the field, then the value, so one field is read like an index of its
 * own.
 */
import type { Document } from 'bson';
import { CommandError } from '../command-error.ts';
import { isDocument } from '../values/field-paths.ts';
import { isNumber, plainNumber } from '../values/numbers.ts';

const ALL = '$**';
/** Maximum keys of one document in one index. */
const MAX_KEYS = 100_000;
/** Options that wildcard indexes do not support, as on a server. */
const NEVER = ['unique', 'sparse', 'expireAfterSeconds', 'clustered'];

const refuse = (why: string) => new CommandError('CannotCreateIndex', why);

/** Whether a key's field includes all fields below it. `$**` of a text index is different. */
export function isWildcard(path: string, kind: unknown): boolean {
  return path.includes(ALL) && typeof kind !== 'string';
}

/** Throws CommandError for combinations that a server refuses, and for several fields. */
export function assertWildcard(asked: Document): void {
  const fields = Object.entries(asked.key as Document);
  const found = fields.find(([path, kind]) => isWildcard(path, kind));
  if (found === undefined) {
    if (asked.wildcardProjection === undefined) return;
    throw onlyAlone();
  }
  const [path, direction] = found;
  if (fields.length > 1)
    throw refuse(
      'A wildcard index of several fields is not supported by this engine: index these fields by themselves',
    );
  if (!/^(?:[^$].*\.)?\$\*\*$/.test(path))
    throw refuse(`Index key contains an illegal field name: ${path} must end in "${ALL}"`);
  if (!isNumber(direction) || !(plainNumber(direction) > 0))
    throw refuse(`A numeric value in a ${ALL} index key pattern must be positive.`);
  const never = NEVER.find((option) => asked[option] !== undefined && asked[option] !== false);
  if (never !== undefined) throw refuse(`Index type 'wildcard' does not support the ${never} option`);
  if (asked.wildcardProjection !== undefined) assertProjection(path, asked.wildcardProjection);
}

function onlyAlone(): CommandError {
  return new CommandError(
    'BadValue',
    `The field 'wildcardProjection' is only allowed when 'key' is {"${ALL}": 1}`,
  );
}

function assertProjection(path: string, projection: unknown): void {
  if (path !== ALL) throw onlyAlone();
  const entries = isDocument(projection) ? Object.entries(projection) : [];
  const isPlain = entries.every(([, value]) => typeof value === 'boolean' || isNumber(value));
  if (entries.length === 0 || !isPlain)
    throw new CommandError('FailedToParse', "The field 'wildcardProjection' names fields, each with 0 or 1");
  const kinds = new Set(entries.filter(([name]) => name !== '_id').map(([, value]) => isIncluded(value)));
  if (kinds.size > 1)
    throw new CommandError(
      'FailedToParse',
      "The field 'wildcardProjection' cannot both include and exclude fields",
    );
}

const isIncluded = (value: unknown) =>
  typeof value === 'boolean' ? value : plainNumber(value as number) !== 0;
const isBelow = (path: string, root: string) => path === root || path.startsWith(`${root}.`);

/** Whether the index contains that field's values. `_id` only if the projection names it. */
export function isInWildcard({ key, wildcardProjection: projection }: Document, path: string): boolean {
  const [name = ''] = Object.keys(key);
  const root = name.slice(0, -ALL.length - 1);
  if (isBelow(path, '_id')) return isIncluded(projection?._id ?? false);
  if (root !== '') return isBelow(path, root);
  const named = Object.entries(projection ?? {}).filter(([each]) => each !== '_id');
  const isOneOf = named.some(([each]) => isBelow(path, each));
  return named.some(([, value]) => isIncluded(value)) ? isOneOf : !isOneOf;
}

/** The path of a field, as the first part of a key: no collation changes it. */
export function pathKey(path: string): Uint8Array {
  return Buffer.from(path);
}

/** Paths and values of a document; an empty array is undefined. Throws CommandError for too many. */
export function wildcardValues(spec: Document, document: Document): [path: string, value: unknown][] {
  const found: [string, unknown][] = [];
  const add = (path: string, value: unknown) => {
    if (!isInWildcard(spec, path)) return;
    found.push([path, value]);
    if (found.length > MAX_KEYS)
      throw new CommandError(
        'CannotBuildIndexKeys',
        `an index can have at most ${MAX_KEYS} keys per document`,
      );
  };
  const visit = (value: unknown, path: string): void => {
    if (Array.isArray(value)) {
      if (value.length === 0) add(path, undefined);
      // Elements have the path of their array.
      for (const element of value) visit(element, path);
    } else if (isDocument(value) && (path === '' || Object.keys(value).length > 0)) {
      for (const [name, each] of Object.entries(value)) visit(each, path === '' ? name : `${path}.${name}`);
    } else add(path, value);
  };
  visit(document, '');
  return found;
}
