/** `$geoNear`, the first stage of an aggregation: documents by distance. */
import type { Document } from 'bson';
import { CommandError } from '../command-error.ts';
import { type Near, readNear } from '../geo/regions.ts';
import { compileFilter, type FilterScope } from '../query/filter.ts';
import type { Collection } from '../storage/documents-store.ts';
import type { Index } from '../storage/index-values.ts';
import { type NearestRead, nearestDocuments } from '../storage/nearest-documents.ts';
import { queryOf } from '../storage/query-plan.ts';
import { prefixesOf, serves } from '../storage/special-plan.ts';
import { setField } from '../values/field-order.ts';
import { isDocument } from '../values/field-paths.ts';
import { isTrue, plainNumber } from '../values/numbers.ts';
import type { CommandScope } from './command-scope.ts';

const OPTIONS = new Set(
  'near distanceField spherical maxDistance minDistance query includeLocs distanceMultiplier key'.split(' '),
);

interface Chosen {
  readonly index: Index;
  /** Which of its fields is the location. */
  readonly at: number;
}

/** The documents of the stage; null: another stage. Throws CommandError. */
export function geoNearStage(
  stage: Document | undefined,
  collection: Collection | undefined,
  { scope, filter }: { scope: CommandScope; filter: FilterScope },
): Iterable<Document> | null {
  if (!isDocument(stage) || !('$geoNear' in stage)) return null;
  const read = readGeoNear(stage, collection, filter);
  if (read === null) return [];
  scope.counters.use(collection as Collection, read.index);
  const found = nearestDocuments(scope.store, collection as Collection, read);
  return found.map((each) => withDistance(each, stage.$geoNear));
}

/** How the stage reads a collection; null: it is absent. Throws CommandError. */
export function readGeoNear(
  stage: Document,
  collection: Collection | undefined,
  filter: FilterScope,
): NearestRead | null {
  const asked: unknown = stage.$geoNear;
  if (!isDocument(asked)) throw new CommandError(10065, 'the specification of $geoNear must be an object');
  const unknown = Object.keys(asked).find((name) => !OPTIONS.has(name));
  if (unknown !== undefined)
    throw new CommandError('BadValue', `'${unknown}' of $geoNear is not supported by this engine`);
  const { near: point, spherical, maxDistance: max, minDistance: min, query = {}, key } = asked;
  if (point === undefined) throw new CommandError(5860400, '$geoNear requires a near argument');
  const near = readNear({ point, isSphere: isTrue(spherical ?? false), max, min });
  const test = compileFilter(query, filter);
  if (collection === undefined) return null;
  const { index, at } = chooseIndex(collection, near, key);
  const { collation = null } = filter;
  const prefixes = prefixesOf(index, queryOf({ filter: query, sort: [], collation }), at);
  if (prefixes === null)
    throw new CommandError(291, '$geoNear needs equal values of the fields before the location in its index');
  const { path } = index.fields[at] as Index['fields'][number];
  return { index, nearest: { near, path, prefixes }, test };
}

function chooseIndex({ indexes }: Collection, near: Near, key: unknown): Chosen {
  if (key !== undefined && (typeof key !== 'string' || key === ''))
    throw new CommandError('TypeMismatch', "$geoNear parameter 'key' must be a field path");
  const found = indexes.flatMap((index) => {
    const at = index.fields.findIndex((field) => serves(field, near));
    if (at === -1 || index.isHidden || index.partial !== null) return [];
    return key === undefined || index.fields[at]?.path.join('.') === key ? [{ index, at }] : [];
  });
  const [only, other] = found;
  if (only === undefined)
    throw new CommandError('IndexNotFound', '$geoNear requires a 2d or 2dsphere index, but none were found');
  if (other !== undefined && key === undefined)
    throw new CommandError(
      'IndexNotFound',
      "There is more than one geo index; specify which to use as 'key'",
    );
  return only;
}

function withDistance(
  { document, distance, location }: { document: Document; distance: number; location: unknown },
  { distanceField, includeLocs, distanceMultiplier = 1 }: Document,
): Document {
  const shown = distance * plainNumber(distanceMultiplier);
  const measured = distanceField === undefined ? document : withField(document, String(distanceField), shown);
  return includeLocs === undefined ? measured : withField(measured, String(includeLocs), location);
}

/** A copy with a value at a path. */
function withField(document: Document, path: string, value: unknown): Document {
  const [name = '', ...rest] = path.split('.');
  const copy = { ...document };
  const inner = isDocument(document[name]) ? document[name] : {};
  setField(copy, name, rest.length === 0 ? value : withField(inner, rest.join('.'), value));
  return copy;
}
