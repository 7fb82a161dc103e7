/** The keys of a document in an index of cells or hashes; its plain fields are as in any index. */
import { createHash } from 'node:crypto';
import type { Document } from 'bson';
import { CommandError } from '../command-error.ts';
import { OutOfTime } from '../command-time.ts';
import { cellsOf, type Grid, gridCell } from '../geo/cells.ts';
import { isGeoJson, legacyPair, readLocation, shown } from '../geo/locations.ts';
import { indexTerms } from '../text/text-index.ts';
import { leavesAt } from '../values/field-paths.ts';
import { keyOf } from '../values/key-order.ts';
import { plainNumber } from '../values/numbers.ts';
import { pathKey, wildcardValues } from '../wildcard/wildcard-index.ts';
import { elementsOf, type Index, type IndexField, orNull, product } from './index-values.ts';

/** Each once. Throws CommandError for a value that the index cannot contain. */
export function specialKeysIn(index: Index, document: Document): Buffer[] {
  if (index.fields[0]?.kind === 'wildcard') return wildcardKeys(index, document);
  const perField = index.fields.map((field) => valuesOf(field, document, index));
  const special = index.fields.flatMap(({ kind }, i) => (kind === 'plain' ? [] : [perField[i] as unknown[]]));
  const isLocated = index.fields.some(({ kind }) => kind !== 'plain' && kind !== 'hashed');
  // Documents without a location or text have no entry in geo or text indexes.
  if ((isLocated || index.isSparse) && special.every((values) => values.length === 0)) return [];
  const isText = index.fields.some(({ kind }) => kind === 'text');
  if (isText) assertNoArrays(index, perField, document);
  // The terms of a text have their own limit.
  const keys = product(perField, isText ? Number.POSITIVE_INFINITY : undefined).map((values) =>
    keyOf(values.map(orNull), index.descending, index.collation),
  );
  if (keys.length > 1) index.isMultikey = true;
  return distinct(keys);
}

function wildcardKeys(index: Index, document: Document): Buffer[] {
  index.isMultikey = true;
  const values = wildcardValues(index.spec, document);
  return distinct(values.map(([path, value]) => keyOf([pathKey(path), value], [], index.collation)));
}

function distinct(keys: readonly Buffer[]): Buffer[] {
  return [...new Map(keys.map((key) => [key.toString('latin1'), key])).values()];
}

function assertNoArrays({ fields }: Index, perField: unknown[][], document: Document): void {
  const at = fields.findIndex(({ kind, path }, i) => {
    const isOne = perField[i]?.length === 1 && !Array.isArray(leavesAt(document, path)[0]);
    return kind === 'plain' && !isOne;
  });
  if (at === -1) return;
  const name = fields[at]?.path.join('.');
  throw new CommandError(
    'CannotBuildIndexKeys',
    `Field '${name}' of text index contains an array in document: ${shown(document._id)}`,
  );
}

function valuesOf({ kind, path }: IndexField, document: Document, index: Index): unknown[] {
  const leaves = leavesAt(document, path);
  switch (kind) {
    case 'plain':
    case 'wildcard':
      return leaves.flatMap(elementsOf);
    case 'text':
      return indexTerms(document, index.spec);
    case 'hashed':
      return [hashOf(leaves)];
    case '2d':
      return present(leaves).flatMap((value) => flatCells(value, gridOf(index)));
    case '2dsphere':
      return present(leaves).flatMap(sphericalCells);
  }
}

function present(leaves: readonly unknown[]): unknown[] {
  return leaves.filter(
    (leaf) => leaf !== undefined && leaf !== null && !(Array.isArray(leaf) && leaf.length === 0),
  );
}

/** Equal for equal values, for all number types. */
export function hashValue(value: unknown): Uint8Array {
  return createHash('md5')
    .update(keyOf([value]))
    .digest()
    .subarray(0, 8);
}

function hashOf(leaves: readonly unknown[]): Uint8Array {
  const [value = null, ...more] = leaves;
  if (more.length > 0 || Array.isArray(value))
    throw new CommandError(16766, 'hashed indexes do not currently support array values');
  return hashValue(value);
}

/** Cells of an index of type `2d`. */
export function gridOf({ spec }: Index): Grid {
  const { min = -180, max = 180, bits = 26 } = spec;
  return { min: plainNumber(min), max: plainNumber(max), bits: plainNumber(bits) };
}

function flatCells(value: unknown, grid: Grid): Buffer[] {
  const own = legacyPair(value);
  const pairs = own === null && Array.isArray(value) ? value.map(legacyPair) : [own];
  return pairs.map((pair) => {
    if (pair === null)
      throw new CommandError(16804, `location object expected, location array not in correct format`);
    if (pair.every((each) => each >= grid.min && each <= grid.max)) return gridCell(pair, grid);
    throw new CommandError(
      13027,
      `point not in interval of [ ${grid.min}, ${grid.max} ]: [${pair.join(', ')}]`,
    );
  });
}

function sphericalCells(value: unknown): Buffer[] {
  const isOne = isGeoJson(value) || legacyPair(value) !== null || !Array.isArray(value);
  return (isOne ? [value] : (value as unknown[])).flatMap((each) => {
    try {
      const location = readLocation(each);
      if (location === null) throw new CommandError('BadValue', 'geo element must be an array or object');
      if (location.shape !== null) return cellsOf(location.shape);
      throw new CommandError('BadValue', `longitude/latitude is out of bounds: ${shown(each)}`);
    } catch (error) {
      if (!(error instanceof CommandError) || error instanceof OutOfTime) throw error;
      throw new CommandError(16755, `Can't extract geo keys: ${error.message}`);
    }
  });
}
