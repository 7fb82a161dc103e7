/** Values of rows as text of a cell. */
import { columnPx } from '../../../parts/grids/column-px.ts';

export interface Bytes {
  readonly base64: string;
}

export function isBytes(value: unknown): value is Bytes {
  return typeof value === 'object' && value !== null && typeof (value as Partial<Bytes>).base64 === 'string';
}

/** Longer text is cut off in a cell: a row may have megabytes. */
const MOST_CHARACTERS = 300;
const MOST_BYTES = 24;

export function bytesLength({ base64 }: Bytes): number {
  return Math.floor((base64.replace(/=+$/, '').length * 3) / 4);
}

/** `0001ff…` */
function hexOf({ base64 }: Bytes): string {
  const start = atob(base64.slice(0, Math.ceil(MOST_BYTES / 3) * 4));
  const hex = [...start].map((byte) => byte.charCodeAt(0).toString(16).padStart(2, '0')).join('');
  return bytesLength({ base64 }) > MOST_BYTES ? `${hex}…` : hex;
}

/** Shown in one line. */
export function shownText(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (isBytes(value)) return hexOf(value);
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text;
}

const NUMERIC = /^(?:.*int(?:eger)?|numeric|decimal|real|double|float|serial)\b(?!\[\])/i;

export function isNumeric(type: string | null): boolean {
  return type !== null && NUMERIC.test(type) && !/interval|point/i.test(type);
}

/** Wide enough for the name, the type, and what the first rows have. */
export function widthOf(column: { name: string; type: string | null }, values: readonly unknown[]): number {
  const lengths = values.map((value) => (isBytes(value) ? MOST_BYTES : shownText(value).length));
  return columnPx([column.name.length + 2, (column.type?.length ?? 0) * 0.8, ...lengths]);
}
