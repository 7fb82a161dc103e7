/** Extended JSON of documents as text for people, and typed text as Extended JSON. */

export type Document = Readonly<Record<string, unknown>>;

/** Longer text is cut off in a line: a document may have megabytes. */
const MOST_CHARACTERS = 200;
/** Number of fields shown in the line of a collapsed document. */
const PREVIEW_FIELDS = 8;

const TYPES: Readonly<Record<string, string>> = {
  $oid: 'ObjectId',
  $date: 'Date',
  $numberInt: 'Int32',
  $numberLong: 'Int64',
  $numberDouble: 'Double',
  $numberDecimal: 'Decimal128',
  $binary: 'Binary',
  $timestamp: 'Timestamp',
  $regularExpression: 'RegExp',
  $symbol: 'Symbol',
  $code: 'Code',
  $minKey: 'MinKey',
  $maxKey: 'MaxKey',
};

export interface Shown {
  readonly type: string;
  readonly text: string;
}

/** A single value; null: an object or list that has other values. */
export function shownValue(value: unknown): Shown | null {
  if (value === null) return { type: 'Null', text: 'null' };
  if (typeof value === 'string') return { type: 'String', text: JSON.stringify(cut(value)) };
  if (typeof value === 'number')
    return { type: Number.isInteger(value) ? 'Int32' : 'Double', text: String(value) };
  if (typeof value !== 'object') return { type: 'Boolean', text: String(value) };
  if (Array.isArray(value)) return null;
  const [[name, inner] = ['', null]] = Object.entries(value);
  const type = Object.hasOwn(TYPES, name) ? TYPES[name] : undefined;
  if (type === undefined) return null;
  return { type, text: cut(textIn(name, inner)) };
}

function textIn(name: string, inner: unknown): string {
  if (name === '$binary') {
    const { base64 = '', subType = '00' } = inner as { base64?: string; subType?: string };
    return `${Math.floor((base64.replace(/=+$/, '').length * 3) / 4)} bytes, type ${subType}`;
  }
  return typeof inner === 'object' || typeof inner === 'number' ? JSON.stringify(inner) : String(inner);
}

function cut(text: string): string {
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text;
}

/** `name: "Ann", tags: [2]`, in one line. */
export function preview(document: Document): string {
  const fields = Object.entries(document).filter(([name]) => name !== '_id');
  const shown = fields.slice(0, PREVIEW_FIELDS).map(([name, value]) => `${name}: ${short(value)}`);
  return fields.length > PREVIEW_FIELDS ? `${shown.join(', ')}, …` : shown.join(', ');
}

function short(value: unknown): string {
  const single = shownValue(value);
  if (single !== null) return single.text.length > 40 ? `${single.text.slice(0, 40)}…` : single.text;
  return Array.isArray(value) ? `[${value.length}]` : `{${Object.keys(value as object).length}}`;
}

/** The text of an `_id`. */
export function sayId(id: unknown): string {
  const single = shownValue(id);
  return single === null
    ? cut(JSON.stringify(id))
    : single.type === 'String'
      ? JSON.parse(single.text)
      : single.text;
}

/** Numbers that JavaScript would round, or whose fraction it would drop, keep their type. */
function typedNumber(_key: string, value: unknown, context?: { source?: string }): unknown {
  const source = context?.source ?? String(value);
  if (typeof value !== 'number' || (Number.isSafeInteger(value) && /^-?\d+$/.test(source))) return value;
  if (/^-?\d+$/.test(source)) return { $numberLong: source };
  return Number.isInteger(value) ? { $numberDouble: source } : value;
}

/** Throws SyntaxError if the text is not an object. */
export function documentIn(text: string): Document {
  const found: unknown = JSON.parse(text, typedNumber);
  if (typeof found !== 'object' || found === null || Array.isArray(found))
    throw new SyntaxError('A document is an object: {"name": "…"}');
  return found as Document;
}
