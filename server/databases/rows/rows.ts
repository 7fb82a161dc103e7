/** Rows of a table, page by page, and changes of rows: all of them, or none. */
import type { Principal } from '../../calls/principal.ts';
import { AppError, invalidField } from '../../platform/errors.ts';
import type { Table } from '../engine.ts';
import type { EngineDescription } from '../engine-description.ts';
import type { Engines } from '../engines.ts';
import type { OwnedDatabases } from '../life/owned-databases.ts';
import type { Queries } from '../queries.ts';
import type { QueryResponse } from '../query-schema.ts';
import type {
  FoundRows,
  RowChange,
  RowFilter,
  RowLanguage,
  RowStatement,
  RowsAsk,
  RowValues,
} from './row-language.ts';
import {
  type ChangedRows,
  ROWS_LIMIT,
  type RowChangesBody,
  type Rows as RowsPage,
  type RowsQuery,
} from './row-schema.ts';

/** Rows are converted on the event loop, which blocks other requests: few at a time. */
const PAGE_BYTES = 512 * 1024;
const ROW_BYTES = 4 * 2 ** 20;

export interface RowsDeps {
  readonly owned: OwnedDatabases;
  readonly engines: Engines;
  readonly queries: Queries;
}

interface Call<T> {
  readonly input: T;
  readonly signal: AbortSignal;
}

export interface ExportedTable {
  readonly table: Table;
  readonly language: RowLanguage;
  /** The names of its columns, or of the fields of its documents. */
  readonly names: () => Promise<readonly string[]>;
  readonly rows: (onRows: (rows: FoundRows['rows']) => Promise<void>, signal: AbortSignal) => Promise<void>;
}

interface ImportTarget {
  readonly language: RowLanguage;
  readonly table: Table | undefined;
  readonly sizeLimitBytes: number;
}

export class Rows {
  readonly #deps: RowsDeps;

  constructor(deps: RowsDeps) {
    this.#deps = deps;
  }

  /**
   * Throws the errors of Queries.run(), and `invalid_request` for an unknown table or column, or a
   * wrong filter.
   */
  async read(
    principal: Principal,
    databaseId: string,
    { input, signal }: Call<RowsQuery>,
  ): Promise<RowsPage> {
    const { table, language, about } = await this.#find(principal, databaseId, { input, signal });
    const filter = (input.filter ?? []) as readonly RowFilter[];
    const limit = input.limit ?? ROWS_LIMIT;
    const { sort = [], skip = 0, match, after } = input;
    if (after !== undefined && skip > 0) throw invalidField('skip', 'cannot be combined with after');
    const ask: RowsAsk = { filter, sort, limit, skip, match: match as RowValues | undefined, after };
    const statement = language.read(table, ask);
    const run = (one: RowStatement, maxBytes: number) => {
      const call = { input: bodyOf(about, one), maxBytes, isExact: true, signal };
      return this.#deps.queries.run(principal, databaseId, call).then((result) => result.toJSON());
    };
    const page = await run(statement, PAGE_BYTES);
    // One row may be larger than a page.
    const result = page.truncated && page.row_count === 0 ? await run(statement, ROW_BYTES) : page;
    const total = input.count === true ? await this.#count(run, language.count(table, ask)) : null;
    const { columns, rows } = language.present(table, result);
    const more = await this.#further(run, { language, table, ask }, result);
    const all = [...rows, ...more.rows];
    const last = all.length === limit || result.truncated || more.truncated ? all.at(-1) : undefined;
    const next = last === undefined ? null : (language.keyValues?.(table, last, ask) ?? null);
    return {
      columns: [...columns],
      rows: all.map((row) => [...row]),
      key: [...language.keyOf(table)],
      truncated: result.truncated || more.truncated,
      next: next === null ? null : [...next],
      total,
      query: bodyOf(about, statement),
      elapsed_ms: result.elapsed_ms,
    };
  }

  /** The rest of a page in key order, which its first statement did not find. */
  async #further(
    run: (one: RowStatement, maxBytes: number) => Promise<QueryResponse>,
    { language, table, ask }: { language: RowLanguage; table: Table; ask: RowsAsk },
    page: QueryResponse,
  ): Promise<{ rows: FoundRows['rows']; truncated: boolean }> {
    let left = (ask.limit ?? 0) - page.row_count;
    const rows: (readonly unknown[])[] = [];
    if (page.truncated || ask.after === undefined) return { rows, truncated: false };
    for (const index of (language.further?.(table, ask) ?? []).keys()) {
      if (left <= 0) break;
      const statement = language.further?.(table, { ...ask, limit: left })[index] as RowStatement;
      const found = await run(statement, PAGE_BYTES);
      rows.push(...language.present(table, found).rows);
      if (found.truncated) return { rows, truncated: true };
      left -= found.row_count;
    }
    return { rows, truncated: false };
  }

  /** Throws `write_conflict` if a row has changed since it was read; then nothing is changed. */
  async change(
    principal: Principal,
    databaseId: string,
    { input, signal }: Call<RowChangesBody>,
  ): Promise<ChangedRows> {
    const { table, language, about } = await this.#find(principal, databaseId, { input, signal });
    const changes = input.changes as readonly RowChange[];
    const needsKey = changes.some(({ action }) => action !== 'insert');
    if (table.type === 'view')
      throw invalidField('table', `${table.name} is a view, whose rows are read-only`);
    if (needsKey && language.keyOf(table).length === 0)
      throw invalidField('table', `${table.name} has no primary key: its rows cannot be identified`);
    // A misspelled member would otherwise insert an empty row.
    if (changes.some(({ action, values }) => action === 'insert' && values === undefined))
      throw invalidField('values', 'is missing: use {} to insert a row of defaults only');
    const statements = changes.map((change) => language.change(table, change));
    if (input.dry_run !== true)
      await this.#deps.queries.change(principal, databaseId, { statements, signal });
    return {
      statements: statements.map((one) => bodyOf(about, one)),
      changed: input.dry_run === true ? 0 : statements.length,
    };
  }

  /** The table, its language, and a function that reads all its rows in one snapshot. */
  async exported(
    principal: Principal,
    databaseId: string,
    { input, signal }: Call<Pick<RowsQuery, 'table' | 'schema'>>,
  ): Promise<ExportedTable> {
    const { table, language, about } = await this.#find(principal, databaseId, { input, signal });
    const statement = language.read(table, { filter: [], sort: [], skip: 0 });
    const present = (rows: FoundRows['rows']) => language.present(table, { columns: [], rows }).rows;
    const rows: ExportedTable['rows'] = (onRows, until) =>
      this.#deps.queries.scan(principal, databaseId, {
        ...statement,
        signal: until,
        onRows: (found) => onRows(present(found)),
      });
    const names = async () => {
      if (language.documents === undefined) return table.columns.map(({ name }) => name);
      const call = { input: bodyOf(about, language.documents.names(table)), signal };
      const found = (await this.#deps.queries.run(principal, databaseId, call)).toJSON();
      if (found.truncated)
        throw invalidField('format', 'has too many different fields for columns: use jsonl');
      return found.rows.map(([name]) => String(name));
    };
    return { table, language, names, rows };
  }

  /** The language and size limit of the database, and the table if there is one of that name. */
  async importing(
    principal: Principal,
    databaseId: string,
    { input, signal }: Call<Pick<RowsQuery, 'table' | 'schema'>>,
  ): Promise<ImportTarget> {
    const { about, table, sizeLimitBytes } = await this.#look(principal, databaseId, { input, signal });
    if (table?.type === 'view')
      throw invalidField('table', `${table.name} is a view, whose rows are read-only`);
    if (table === undefined && input.schema !== undefined)
      throw invalidField('schema', 'is only for an existing table: a new one is in the default schema');
    return { language: about.rows, table, sizeLimitBytes };
  }

  async #find(principal: Principal, databaseId: string, call: Call<Pick<RowsQuery, 'table' | 'schema'>>) {
    const { about, table } = await this.#look(principal, databaseId, call);
    if (table === undefined) throw invalidField('table', `there is no ${call.input.table}`);
    return { table, language: about.rows, about };
  }

  async #look(
    principal: Principal,
    databaseId: string,
    { input: { table: name, schema }, signal }: Call<Pick<RowsQuery, 'table' | 'schema'>>,
  ) {
    const { owned, engines, queries } = this.#deps;
    const row = await owned.findLive(principal, databaseId);
    const about = engines.about(row.engine);
    if (!hasRows(about))
      throw invalidField('table', `rows of ${about.title} can only be read and changed with statements`);
    const tables = (await queries.tables(principal, databaseId, signal)).toJSON();
    const table = tables.find((one) => one.name === name && (schema === undefined || one.schema === schema));
    return { about, table, sizeLimitBytes: row.size_limit_bytes };
  }

  /** If counting takes too long, the rows are shown without a count. */
  async #count(
    run: (one: RowStatement, maxBytes: number) => Promise<QueryResponse>,
    statement: RowStatement,
  ) {
    try {
      const { rows } = await run(statement, PAGE_BYTES);
      return Number(rows[0]?.[0] ?? 0);
    } catch (error) {
      if (error instanceof AppError && error.code === 'query_timeout') return null;
      throw error;
    }
  }
}

type WithRows = EngineDescription & { readonly rows: RowLanguage };

function hasRows(about: EngineDescription): about is WithRows {
  return about.rows !== undefined;
}

function bodyOf({ traits }: EngineDescription, { statement, params }: RowStatement) {
  const list = [...params];
  return traits.language === 'sql'
    ? { statement: String(statement), params: list }
    : { command: statement as Record<string, unknown>, params: list };
}
