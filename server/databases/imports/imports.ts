/** Rows of a CSV or JSON file, added to a new or existing table in one transaction. */
import type { Principal } from '../../calls/principal.ts';
import { AppError, invalidField } from '../../platform/errors.ts';
import { MIB } from '../database-view.ts';
import {
  type InsertBatch,
  LoadFailed,
  type RefusedRow,
  RowsRefused,
  type Table,
  TableLeft,
} from '../engine.ts';
import type { DatabaseTurns } from '../life/states.ts';
import type { Queries } from '../queries.ts';
import type { RowLanguage, RowStatement } from '../rows/row-language.ts';
import type { Rows } from '../rows/rows.ts';
import { BrokenText } from './csv-reader.ts';
import { type ImportedRow, readRows, type SourceAsk } from './file-rows.ts';
import { type ColumnKind, kindOf } from './guesses.ts';
import { type ImportColumn, type ImportedTable, SAMPLE_ROWS } from './import-schema.ts';
import { LastLines } from './last-lines.ts';
import { sourceFile } from './source-file.ts';
import { type Convert, converterOf } from './values.ts';

export interface ImportsDeps {
  readonly rows: Pick<Rows, 'importing'>;
  readonly queries: Pick<Queries, 'insert'>;
  readonly turns: Pick<DatabaseTurns, 'during'>;
  /** Throws `out_of_space` when that many more bytes cannot be stored. */
  readonly assertSpace: (bytes: number) => void;
}

/** Changes to the guess for one field of the file; null: it is left out. */
export type FieldChoice = { readonly name?: string; readonly type?: ColumnKind } | null;

export interface ImportAsk extends SourceAsk {
  readonly table: string;
  readonly schema?: string | undefined;
  readonly columns: Readonly<Record<string, FieldChoice>>;
  /** Only reads the beginning, and returns the plan of the import. */
  readonly isDry: boolean;
}

interface Given {
  readonly file: AsyncIterable<Uint8Array>;
  readonly ask: ImportAsk;
  readonly signal: AbortSignal;
}

interface Plan {
  readonly table: Table;
  readonly language: RowLanguage;
  readonly isNew: boolean;
  readonly columns: readonly (ImportColumn & { readonly convert: Convert })[];
}

/** Maximum rows of one statement, and maximum values. */
const BATCH_ROWS = 500;
const BATCH_VALUES = 20_000;
/** Text of rows, above all JSON, may be larger than the same rows in a database. */
const MAX_TEXT_GROWTH = 16;
const BATCH_CHARACTERS = 512 * 1024;
/** Maximum bad lines in the error message. */
const TOLD_LINES = 5;
/** Number of values used to guess the type of a column. */
const GUESSED_ROWS = 5000;

export class Imports {
  readonly #deps: ImportsDeps;

  constructor(deps: ImportsDeps) {
    this.#deps = deps;
  }

  /**
   * Adds all rows of the file, or none. Throws `load_failed` with the lines that cannot be stored (`lines`),
   * `invalid_request` for a table or column that does not exist, `payload_too_large` for a packed file of far
   * more than the database may hold, and the errors of Queries.run().
   */
  run(principal: Principal, databaseId: string, { file, ask, signal }: Given): Promise<ImportedTable> {
    const work = (either: AbortSignal) => this.#run(principal, databaseId, { file, ask, signal: either });
    return this.#deps.turns.during([databaseId], work, signal);
  }

  async #run(principal: Principal, databaseId: string, { file, ask, signal }: Given): Promise<ImportedTable> {
    const { rows: tables, queries } = this.#deps;
    const { table: named, schema } = ask;
    const input = schema === undefined ? { table: named } : { table: named, schema };
    const found = await tables.importing(principal, databaseId, { input, signal });
    const most = found.sizeLimitBytes * MAX_TEXT_GROWTH;
    const pieces = sourceFile(this.#checked(file), (layer) => this.#checked(layer, most));
    try {
      const hasDocuments = found.language.documents !== undefined;
      const source = await readRows(pieces, { ...ask, hasDocuments });
      const plan = planOf(source, ask, found);
      const { table, language, isNew, columns } = plan;
      const about = {
        table: table.name,
        created: isNew,
        format: source.format,
        separator: source.separator,
        header: source.header,
        columns: columns.map(({ field, name, type }) => ({ field, name, type })),
      };
      const wanted = columns.filter(({ name }) => name !== null);
      if (wanted.length === 0) throw invalidField('columns', 'must not leave out all fields');
      if (ask.isDry) {
        const sample = source.beginning.slice(0, SAMPLE_ROWS).map(({ values }) => [...values]);
        return { ...about, sample, rows: 0 };
      }
      const lines = new LastLines(2 * BATCH_ROWS);
      const names = wanted.map(({ name }) => name as string);
      const first = isNew
        ? language.createTable(
            table,
            wanted.map(({ type }) => type as ColumnKind),
          )
        : null;
      const undo = isNew ? language.dropTable(table) : null;
      const insertAll: InsertAll = (batch) =>
        source.isWhole && language.documents !== undefined
          ? language.documents.insert(table, batch.flat())
          : language.insertRows(table, names, batch);
      const batches = batchesOf(readable(source.rows), { insertAll, names, columns, lines });
      try {
        await queries.insert(principal, databaseId, { first, undo, batches, signal });
      } catch (error) {
        const cause = error instanceof TableLeft ? error.cause : error;
        const told = cause instanceof RowsRefused ? badRows(cause.rows, lines) : cause;
        throw error instanceof TableLeft ? withTable(told, table.name) : told;
      }
      return { ...about, sample: [], rows: lines.count };
    } catch (error) {
      if (error instanceof LoadFailed)
        throw new AppError('load_failed', `${error.message}. Nothing was imported`);
      throw error instanceof BrokenText ? badText(error) : error;
    } finally {
      // A plan reads the beginning alone.
      await pieces.return(undefined);
    }
  }

  /** Applied to the received bytes, and with a limit to those of each packing, which may unpack to none. */
  async *#checked(
    file: AsyncIterable<Uint8Array>,
    most = Number.POSITIVE_INFINITY,
  ): AsyncGenerator<Uint8Array> {
    let bytes = 0;
    for await (const piece of file) {
      bytes += piece.length;
      if (bytes > most) throw tooLarge(most);
      this.#deps.assertSpace(piece.length);
      yield piece;
    }
  }
}

function tooLarge(most: number): AppError {
  const times = `${MAX_TEXT_GROWTH} times the size limit of the database`;
  return new AppError(
    'payload_too_large',
    `The file unpacks to more than ${Math.floor(most / MIB)} MB, ${times}`,
    {
      hint: 'Set a larger size_limit_mb first, or import the file in parts',
    },
  );
}

type Source = Awaited<ReturnType<typeof readRows>>;
type Found = Awaited<ReturnType<Rows['importing']>>;

/** Throws `invalid_request` for a field or column that does not exist. */
function planOf(
  { fields, beginning, isWhole = false }: Source,
  { columns: chosen, table: name }: ImportAsk,
  found: Found,
): Plan {
  const { language, table } = found;
  const unknown = Object.keys(chosen).find((field) => !fields.includes(field));
  if (unknown !== undefined) throw invalidField('columns', `the file has no field ${unknown}`);
  if (isWhole && Object.keys(chosen).length > 0)
    throw invalidField('columns', 'apply only to files with columns: documents are stored unchanged');
  const guessed = beginning.slice(0, GUESSED_ROWS);
  const present = new Map(table?.columns.map((column) => [column.name, column]));
  const columns = fields.map((field, at) => {
    const choice = Object.hasOwn(chosen, field) ? chosen[field] : undefined;
    const isGenerated = present.get(field)?.generated === true;
    if (choice === null || (choice === undefined && isGenerated))
      return { field, name: null, type: null, convert: asIs };
    if (isWhole) return { field, name: field, type: 'json' as const, convert: asIs };
    const to = choice?.name ?? field;
    const traits = language.importTraits;
    if (table === undefined || traits.convert !== undefined) {
      const type = choice?.type ?? kindOf(guessed.map(({ values }) => values[at]));
      return { field, name: to, type, convert: traits.convert?.(type, to) ?? converterOf(type, traits) };
    }
    const column = present.get(to);
    if (column === undefined)
      throw invalidField('columns', `${name} has no column ${to}: leave the field out, or choose its column`);
    const kind = language.takesBytes(column) ? 'bytes' : null;
    return { field, name: to, type: null, convert: converterOf(kind, traits) };
  });
  const names = columns.flatMap((column) => column.name ?? []);
  const twice = names.find((one, at) => names.indexOf(one) !== at);
  if (twice !== undefined) throw invalidField('columns', `${twice} occurs twice`);
  const made: Table = table ?? {
    ...NEW_TABLE,
    name,
    columns: names.map((one) => ({ ...NEW_COLUMN, name: one })),
  };
  return { table: made, language, isNew: table === undefined, columns };
}

const asIs: Convert = (value) => value;

const NEW_COLUMN = { type: null, nullable: true, default: null, primary_key: false };
const NEW_TABLE = {
  schema: null,
  type: 'table' as const,
  indexes: [],
  foreign_keys: [],
  estimated_rows: null,
  size_bytes: null,
};

type InsertAll = (rows: readonly (readonly unknown[])[]) => RowStatement;

interface Batching extends Pick<Plan, 'columns'> {
  readonly insertAll: InsertAll;
  readonly names: readonly string[];
  /** Receives the line of each row. */
  readonly lines: LastLines;
}

/** Engines only pass on errors known to callers. */
async function* readable<T>(rows: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* rows;
  } catch (error) {
    throw error instanceof BrokenText ? badText(error) : error;
  }
}

async function* batchesOf(
  rows: AsyncIterable<readonly ImportedRow[]>,
  { insertAll, names, columns, lines }: Batching,
): AsyncGenerator<InsertBatch> {
  const most = Math.max(1, Math.min(BATCH_ROWS, Math.floor(BATCH_VALUES / names.length)));
  let values: unknown[][] = [];
  let characters = 0;
  const taken = (): InsertBatch => {
    const batch = values;
    [values, characters] = [[], 0];
    return {
      whole: () => insertAll(batch),
      each: () => batch.map((row) => insertAll([row])),
    };
  };
  for await (const page of rows)
    for (const { line, values: found, characters: more } of page) {
      lines.push(line);
      values.push(
        columns.flatMap(({ name, convert }, at) => (name === null ? [] : [convert(found[at] ?? null)])),
      );
      characters += more;
      if (values.length >= most || characters >= BATCH_CHARACTERS) yield taken();
    }
  if (values.length > 0) yield taken();
}

/** The error, which also says that the new table still exists. */
function withTable(error: unknown, table: string): unknown {
  if (!(error instanceof AppError)) return error;
  const left = `The new table ${table} could not be removed again: it exists, without rows`;
  const hint = `Drop the table ${table}, then repeat the import`;
  return new AppError(error.code, `${error.message}. ${left}`, {
    hint,
    extra: error.extra ?? {},
    cause: error,
  });
}

function badText({ line, message }: BrokenText): AppError {
  return refused([{ line, reason: message }]);
}

function badRows(rows: readonly RefusedRow[], lines: LastLines): AppError {
  return refused(rows.map(({ at, message }) => ({ line: lines.at(at), reason: message })));
}

function refused(lines: readonly { readonly line: number; readonly reason: string }[]): AppError {
  const told = lines.slice(0, TOLD_LINES).map(({ line, reason }) => `Line ${line}: ${reason}`);
  const more = lines.length > TOLD_LINES ? `; and ${lines.length - TOLD_LINES} more` : '';
  return new AppError('load_failed', `${told.join('; ')}${more}. Nothing was imported`, {
    hint: 'Correct the line in the file, choose another type for its column, or leave the column out',
    extra: { lines },
  });
}
