/** Hrana as JSON. Unknown members are ignored, as the protocol requires. */
import type { SQLOutputValue } from 'node:sqlite';
import { describeError } from './error.ts';
import {
  type Answer,
  Budget,
  type Column,
  type Counted,
  type CursorEntry,
  type Description,
  type HranaFormat,
  type JsonObject,
  lengthOf,
  type Output,
  type Piece,
  protocolError,
} from './format.ts';

export const JSON_FORMAT: HranaFormat = {
  contentType: 'application/json',
  readPipeline: readBody,
  readCursor: readBody,
  readMessage: readBody,
  output: (maxLength) => new JsonOutput(maxLength),
};

/** Throws HranaError `PROTOCOL_ERROR`. */
function readBody(bytes: Uint8Array): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(utf8.decode(bytes));
  } catch {
    throw protocolError('The body is not valid JSON');
  }
  return objectOf(value, 'The body');
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Throws HranaError `PROTOCOL_ERROR`, with a message that begins with `what`. */
export function objectOf(value: unknown, what: string): JsonObject {
  if (!isObject(value)) throw protocolError(`${what} must be an object`);
  return value;
}

/** An optional list; throws HranaError `PROTOCOL_ERROR`. */
export function listOf(value: unknown, what: string): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw protocolError(`${what} must be a list`);
  return value;
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

class JsonOutput implements Output {
  readonly #budget: Budget;

  constructor(maxLength: number) {
    this.#budget = new Budget(maxLength);
  }

  renew(): void {
    this.#budget.renew();
  }

  row(values: readonly SQLOutputValue[]): string {
    let json = '';
    for (const value of values) {
      this.#budget.assertFits(lengthOf(value));
      json += json === '' ? valueJson(value) : `,${valueJson(value)}`;
      this.#budget.assertFits(json.length);
    }
    this.#budget.take(json.length);
    return `[${json}]`;
  }

  result(columns: readonly Column[], rows: readonly Piece[], count: Counted): string {
    return `{"cols":${columnsJson(columns)},"rows":[${rows.join(',')}],${countJson(count)}}`;
  }

  batch(results: readonly (Piece | null)[], errors: readonly (Piece | null)[]): string {
    const list = (pieces: readonly (Piece | null)[]) => pieces.map((piece) => piece ?? 'null').join(',');
    return `{"step_results":[${list(results)}],"step_errors":[${list(errors)}]}`;
  }

  description({ params, columns, explains, writes }: Description): string {
    const names = params.map((name) => `{"name":${JSON.stringify(name)}}`);
    return (
      `{"params":[${names.join(',')}],"cols":${columnsJson(columns)},` +
      `"is_explain":${explains},"is_readonly":${!writes}}`
    );
  }

  error(error: unknown): string {
    return JSON.stringify(describeError(error));
  }

  entry(entry: CursorEntry): string {
    switch (entry.type) {
      case 'step_begin':
        return `{"type":"step_begin","step":${entry.step},"cols":${columnsJson(entry.columns)}}`;
      case 'row':
        return `{"type":"row","row":${entry.row}}`;
      case 'step_end':
        return `{"type":"step_end",${countJson(entry.count)}}`;
      case 'step_error':
        return `{"type":"step_error","step":${entry.step},"error":${this.error(entry.error)}}`;
      case 'error':
        return `{"type":"error","error":${this.error(entry.error)}}`;
    }
  }

  succeeded(answer: Answer): string {
    return `{"type":"ok","response":${answerJson(answer)}}`;
  }

  failed(error: unknown): string {
    return `{"type":"error","error":${this.error(error)}}`;
  }

  pipeline(baton: string | null, results: readonly Piece[]): string {
    return `{"baton":${JSON.stringify(baton)},"base_url":null,"results":[${results.join(',')}]}`;
  }

  cursor(baton: string | null): string {
    return `{"baton":${JSON.stringify(baton)},"base_url":null}`;
  }

  sequence(messages: readonly Piece[]): string {
    return messages.map((message) => `${message}\n`).join('');
  }

  response(requestId: number, answer: Answer): string {
    return `{"type":"response_ok","request_id":${requestId},"response":${answerJson(answer)}}`;
  }

  refusal(requestId: number, error: unknown): string {
    return `{"type":"response_error","request_id":${requestId},"error":${this.error(error)}}`;
  }
}

function answerJson({ type, result, isAutocommit, entries, isDone }: Answer): string {
  if (result !== undefined) return `{"type":"${type}","result":${result}}`;
  if (isAutocommit !== undefined) return `{"type":"${type}","is_autocommit":${isAutocommit}}`;
  if (entries !== undefined) return `{"type":"${type}","entries":[${entries.join(',')}],"done":${isDone}}`;
  return `{"type":"${type}"}`;
}

function columnsJson(columns: readonly Column[]): string {
  const texts = columns.map(
    ({ name, type }) => `{"name":${JSON.stringify(name)},"decltype":${JSON.stringify(type)}}`,
  );
  return `[${texts.join(',')}]`;
}

/** Members of a JSON object. */
function countJson({ affected, lastRowid }: Counted): string {
  const rowid = lastRowid === null ? 'null' : `"${lastRowid}"`;
  return `"affected_row_count":${affected},"last_insert_rowid":${rowid}`;
}

function valueJson(value: SQLOutputValue): string {
  if (value === null) return '{"type":"null"}';
  if (typeof value === 'bigint') return `{"type":"integer","value":"${value}"}`;
  if (typeof value === 'string') return `{"type":"text","value":${JSON.stringify(value)}}`;
  if (typeof value === 'number') return `{"type":"float","value":${numberJson(value)}}`;
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return `{"type":"blob","base64":"${bytes.toString('base64')}"}`;
}

/** JSON has no infinity, but parsers produce one for a number that is too large. */
function numberJson(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return value > 0 ? '1e999' : '-1e999';
}
