/** Documents of a collection: read by `find`, changed by commands that a driver could send as well. */
import type { Table } from '../../../databases/engine.ts';
import type { ColumnKind } from '../../../databases/imports/guesses.ts';
import type {
  FoundRows,
  RowChange,
  RowFilter,
  RowLanguage,
  RowStatement,
  RowsAsk,
  RowValues,
} from '../../../databases/rows/row-language.ts';
import { invalidField } from '../../../platform/errors.ts';
import { importedValue } from './imported-values.ts';

/** A larger document is returned as its `_id` only, so that pages stay small. */
const WHOLE_BYTES = 256 * 1024;
const ROOT = '$$ROOT';
const COLUMNS = [
  { name: 'document', type: 'document' },
  { name: 'bytes', type: null },
];
const COMPARED = { eq: '$eq', ne: '$ne', lt: '$lt', le: '$lte', gt: '$gt', ge: '$gte' } as const;

/** Members of Extended JSON that hold one value as text. */
const DIGITS = ['$oid', '$numberInt', '$numberLong', '$numberDouble', '$numberDecimal'];

/** The least value of each type, in MongoDB's order: a comparison finds values of one type only. */
const LEAST: readonly (readonly [type: string, least: unknown])[] = [
  ['null', null],
  ['number', { $numberDouble: '-Infinity' }],
  ['string', ''],
  ['object', {}],
  ['binary', { $binary: { base64: '', subType: '00' } }],
  ['objectId', { $oid: '0'.repeat(24) }],
  ['boolean', false],
  ['date', { $date: { $numberLong: '-9223372036854775808' } }],
  ['timestamp', { $timestamp: { t: 0, i: 0 } }],
];
const TYPES_BY_MEMBER: Readonly<Record<string, string>> = {
  $oid: 'objectId',
  $date: 'date',
  $timestamp: 'timestamp',
  $binary: 'binary',
  $uuid: 'binary',
  $numberInt: 'number',
  $numberLong: 'number',
  $numberDouble: 'number',
  $numberDecimal: 'number',
};

class Documents implements RowLanguage {
  readonly importTraits = { hasZones: true, convert: importedValue };

  readonly documents = {
    names: ({ name }: Table) => ({
      statement: {
        aggregate: name,
        pipeline: [
          { $project: { field: { $objectToArray: ROOT } } },
          { $unwind: '$field' },
          { $group: { _id: '$field.k' } },
          { $sort: { _id: 1 } },
        ],
        cursor: {},
      },
      params: [],
    }),
    textOf,
    insert: (table: Table, documents: readonly unknown[]) => command({ insert: table.name, documents }),
  };

  read(table: Table, ask: RowsAsk): RowStatement {
    return this.#find(table, ask, after(ask));
  }

  #find(table: Table, ask: RowsAsk, more: readonly RowValues[]): RowStatement {
    const { limit, skip } = ask;
    return command({
      find: table.name,
      filter: filterOf(ask, more),
      sort: sortOf(table, ask),
      ...(skip === 0 ? {} : { skip }),
      ...(limit === undefined ? {} : { limit }),
      projection: limit === undefined ? ALL : PAGE,
    });
  }

  further(table: Table, ask: RowsAsk): readonly RowStatement[] {
    const type = typeOf(ask.after?.[0]);
    const order = isDown(ask) ? LEAST.toReversed() : LEAST;
    const at = order.findIndex(([name]) => name === type);
    return order
      .slice(at + 1)
      .map(([, least]) => this.#find(table, ask, [{ _id: least === null ? null : { $gte: least } }]));
  }

  keyValues(table: Table, row: readonly unknown[], { sort }: RowsAsk): readonly unknown[] | null {
    const isByKey = sort.length === 0 || (sort.length === 1 && sort[0]?.column === '_id');
    if (table.type !== 'collection' || !isByKey) return null;
    return [(row[0] as RowValues)._id ?? null];
  }

  count({ name }: Table, ask: Pick<RowsAsk, 'filter' | 'match'>): RowStatement {
    return command({ count: name, query: filterOf(ask, []) });
  }

  present(_: Table, { columns, rows }: FoundRows): FoundRows {
    const places = COLUMNS.map(({ name }) => columns.findIndex((one) => one.name === name));
    // A scan has documents only, and names no columns.
    const at = columns.length === 0 ? [0, 1] : places;
    return { columns: COLUMNS, rows: rows.map((row) => at.map((place) => row[place] ?? null)) };
  }

  keyOf({ type }: Table): readonly string[] {
    return type === 'collection' ? ['_id'] : [];
  }

  change({ name }: Table, { action, values = {}, old = {} }: RowChange): RowStatement {
    if (action === 'insert') return command({ insert: name, documents: [values] });
    if (!Object.hasOwn(old, '_id')) throw invalidField('old', 'needs the whole document, with its _id');
    const q = { _id: { $eq: old._id }, $expr: { $eq: [ROOT, { $literal: old }] } };
    if (action === 'delete') return command({ delete: name, deletes: [{ q, limit: 1 }] });
    const operator = Object.keys(values)[0];
    if (operator?.startsWith('$'))
      throw invalidField('values', `must be the whole document, without operators such as ${operator}`);
    return command({ update: name, updates: [{ q, u: values }] });
  }

  takesBytes(): boolean {
    return false;
  }

  /** A field without a value is not in the document. */
  insertRows(table: Table, names: readonly string[], rows: readonly (readonly unknown[])[]): RowStatement {
    const documents = rows.map((row) =>
      Object.fromEntries(
        names.flatMap((name, at) => (row[at] === null || row[at] === undefined ? [] : [[name, row[at]]])),
      ),
    );
    return this.documents.insert(table, documents);
  }

  createTable({ name }: Table, _kinds: readonly ColumnKind[]) {
    return { create: name };
  }

  dropTable({ name }: Table) {
    return { drop: name };
  }
}

export const MONGODB_ROWS: RowLanguage = new Documents();

const ALL = { _id: 0, document: ROOT };
const SIZE = { $bsonSize: ROOT };
const PAGE = {
  _id: 0,
  document: { $cond: [{ $gt: [SIZE, WHOLE_BYTES] }, { _id: '$_id' }, ROOT] },
  bytes: SIZE,
};

function command(statement: Readonly<Record<string, unknown>>): RowStatement {
  return { statement, params: [] };
}

function sortOf({ type }: Table, { sort }: RowsAsk): Record<string, 1 | -1> {
  const order = sort.map(({ column, descending }) => [column, descending === true ? -1 : 1] as const);
  const hasKey = type !== 'collection' || sort.some(({ column }) => column === '_id');
  return Object.fromEntries(hasKey ? order : [...order, ['_id', 1] as const]);
}

function isDown({ sort }: RowsAsk): boolean {
  return sort[0]?.descending === true;
}

/** The condition for rows after a key. Throws `invalid_request` if the order is not that of the key. */
function after(ask: RowsAsk): readonly RowValues[] {
  if (ask.after === undefined) return [];
  if (ask.after.length !== 1) throw invalidField('after', 'takes one value, an _id');
  if (ask.sort.some(({ column }) => column !== '_id') || ask.sort.length > 1)
    throw invalidField(
      'after',
      'is only for documents in the order of their _id: use skip for another order',
    );
  const [value = null] = ask.after;
  // No value of the same type is greater than null.
  if (value === null) return [{ _id: { $in: [] } }];
  return [{ _id: { [isDown(ask) ? '$lt' : '$gt']: value } }];
}

function typeOf(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  if (typeof value !== 'object') return typeof value;
  const member = Object.keys(value).find((name) => Object.hasOwn(TYPES_BY_MEMBER, name));
  return member === undefined ? 'object' : (TYPES_BY_MEMBER[member] as string);
}

function filterOf(
  { filter, match }: Pick<RowsAsk, 'filter' | 'match'>,
  more: readonly RowValues[],
): RowValues {
  const given = match === undefined || Object.keys(match).length === 0 ? [] : [match];
  const all = [...given, ...filter.map(termOf), ...more];
  return all.length > 1 ? { $and: all } : (all[0] ?? {});
}

function termOf({ column, operator, value }: RowFilter): RowValues {
  if (operator === 'is_null') return { [column]: { $eq: null } };
  if (operator === 'is_not_null') return { [column]: { $ne: null } };
  if (value === undefined) throw invalidField('filter', `${operator} needs a value`);
  if (operator !== 'contains' && operator !== 'starts_with')
    return { [column]: { [COMPARED[operator]]: value } };
  if (typeof value !== 'string' || value === '')
    throw invalidField('filter', `${operator} needs at least one character of text`);
  const text = value.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`);
  return { [column]: { $regex: operator === 'contains' ? text : `^${text}`, $options: 'i' } };
}

/** A value of Extended JSON as text of a CSV field: types that text cannot express are Extended JSON. */
function textOf(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value !== 'object') return String(value);
  const [[name = '', inner] = []] = Object.entries(value);
  if (DIGITS.includes(name)) return String(inner);
  if (name === '$date' && typeof inner === 'string') return inner;
  if (name === '$binary' && inner?.subType === '00')
    return `\\x${Buffer.from(String(inner.base64), 'base64').toString('hex')}`;
  return JSON.stringify(value);
}
