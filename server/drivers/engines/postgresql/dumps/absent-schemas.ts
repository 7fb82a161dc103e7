/**
 * Dumps of a part of a database refer to the rest: `pg_dump -t` and `-n` leave out schemas and tables,
 * and hosted services leave out their own schemas. No row depends on these, so the statements that need
 * them are left out, and the rows load as they are.
 */
import type { Refused } from './refused-statements.ts';
import type { ServerFacts } from './server-facts-store.ts';
import { mentionsOf, pattern, plainName, qualifiedName, remember, withoutTexts } from './sql-names.ts';

const SCHEMA = pattern('^CREATE SCHEMA (?:IF NOT EXISTS )?(?!AUTHORIZATION )(ID)');
const EXTENSION = pattern('^CREATE EXTENSION (?:IF NOT EXISTS )?ID (?:WITH )?SCHEMA (ID)');
const ANY_EXTENSION = /^CREATE\s+EXTENSION\b/i;
const MADE = pattern(
  '^CREATE(?: OR REPLACE)?(?: UNLOGGED| MATERIALIZED| RECURSIVE)? (?:TABLE|SEQUENCE|VIEW|FUNCTION|PROCEDURE|' +
    'AGGREGATE|TYPE|DOMAIN|COLLATION) (?:IF NOT EXISTS )?(?:(ID)\\.)?(ID)',
);
const TABLE = pattern('^CREATE(?: UNLOGGED)? TABLE ');
const FOREIGN_KEY = pattern('^ALTER TABLE [\\s\\S]+? FOREIGN KEY [\\s\\S]+? REFERENCES ((?:ID\\.)?ID)');
const SET_DEFAULT = pattern('^ALTER TABLE [\\s\\S]+? ALTER(?: COLUMN)? ID SET DEFAULT ');
/** Statements without rows that call functions and read tables. */
const CALLS = pattern(
  '^(?:CREATE(?: OR REPLACE)?(?: UNIQUE| CONSTRAINT| MATERIALIZED| RECURSIVE)? (?:VIEW|INDEX|TRIGGER|RULE|POLICY)|ALTER POLICY) ',
);
/** A name with a schema, of a function or a table. The schema can also be an alias of a table. */
const CALLED = new RegExp(
  pattern('(?:(?<![\\w".])(ID)\\.ID\\s*\\(|\\b(?:FROM|JOIN|UPDATE|INTO|ON) (?:ONLY )?(ID)\\.ID)').source,
  'gi',
);
/** Statements with rows of a table, and what changes a sequence or calls a function. */
const ROWS = pattern('^(?:COPY|INSERT INTO) (?:(ID)\\.)?(ID)');
const SETVAL = /^SELECT\s+(?:pg_catalog\.)?setval\s*\(\s*'((?:[^']|'')+)'/i;
const SELECTED = pattern('^SELECT (?:(ID)\\.)?(ID)\\s*\\(');
const FUNCTION = pattern('^CREATE(?: OR REPLACE)? (?:FUNCTION|PROCEDURE|AGGREGATE) ((?:ID\\.)?ID)');
const SEQUENCE = new RegExp(pattern('\\bSEQUENCE (?:IF NOT EXISTS |NAME )?((?:ID\\.)?ID)').source, 'gi');
const DEFAULT = new RegExp(pattern(' DEFAULT (ID)\\.(ID)\\(\\)').source, 'gi');

const lastPart = (name: string) => name.slice(name.lastIndexOf('.') + 1);

export class AbsentSchemas {
  readonly #schemas: Set<string>;
  /** Names of tables of the dump, without schemas. */
  readonly #tables = new Set<string>();
  /** Names of sequences of the dump, without schemas. */
  readonly #sequences = new Set<string>();
  /** Schemas of extensions that were left out; null: of none. */
  #ofExtensions: Set<string> | null = null;
  /** The dump runs code that may create more than its statements show. */
  #isUnsure = false;

  readonly #functions: Set<string>;

  /** `schemas`, `functions`: those of the database that is loaded into. */
  constructor({ schemas, functions }: Pick<ServerFacts, 'schemas' | 'functions'>) {
    this.#schemas = new Set(schemas);
    this.#functions = new Set(functions);
  }

  /** Call for each statement that runs. */
  noteMade(text: string): void {
    if (/^DO\b/i.test(text)) this.#isUnsure = true;
    const schema = SCHEMA.exec(text)?.[1];
    if (schema !== undefined) remember(this.#schemas, plainName(schema));
    const table = TABLE.test(text) ? MADE.exec(text)?.[2] : undefined;
    if (table !== undefined) remember(this.#tables, plainName(table));
    const made = FUNCTION.exec(text)?.[1];
    if (made !== undefined) remember(this.#functions, lastPart(qualifiedName(made)));
    if (this.#ofExtensions === null && !/\bSEQUENCE\b/i.test(text)) return;
    for (const [, name = ''] of text.matchAll(SEQUENCE))
      remember(this.#sequences, lastPart(qualifiedName(name)));
  }

  /** Call for each statement that is left out. */
  noteLeftOut(text: string): void {
    if (!ANY_EXTENSION.test(text)) return;
    this.#ofExtensions ??= new Set();
    const schema = EXTENSION.exec(text)?.[1];
    if (schema !== undefined) remember(this.#ofExtensions, plainName(schema));
  }

  /** Whether tables of the dump may belong to an extension that was left out. */
  get lacksExtension(): boolean {
    return this.#ofExtensions !== null;
  }

  /**
   * Rows of a table that an extension would have made, such as `cron.job`: pg_dump writes them after the
   * extension. null: they are of the dump's own tables, as far as known.
   */
  ofExtension(text: string): Refused | null {
    if (this.#ofExtensions === null || this.#isUnsure) return null;
    const [, schema, table] = ROWS.exec(text) ?? [];
    if (table !== undefined && !this.#tables.has(plainName(table)) && this.#isOfExtension(schema ?? 'public'))
      return { reason: `the table ${qualifiedName(table)} is of an extension that was left out` };
    const sequence = qualifiedName(SETVAL.exec(text)?.[1]?.replaceAll("''", "'") ?? '');
    if (sequence.includes('.') && !this.#sequences.has(lastPart(sequence))) {
      const of = sequence.slice(0, sequence.indexOf('.'));
      if (of !== 'public' && this.#isOfExtension(of))
        return { reason: `the sequence ${sequence} is of an extension that was left out` };
    }
    const [, of, name] = SELECTED.exec(text) ?? [];
    if (name === undefined) return null;
    const isKnown = of === undefined ? this.#functions.has(plainName(name)) : this.#has(of);
    return isKnown
      ? null
      : { reason: `the function ${qualifiedName(name)} is of an extension that was left out` };
  }

  #isOfExtension(schema: string): boolean {
    return !this.#has(schema) || this.#ofExtensions?.has(plainName(schema)) === true;
  }

  /** Why a statement cannot run unchanged, and its replacement; null: it can run. */
  of(text: string): Refused | null {
    if (this.#isUnsure) return null;
    return this.#placed(text) ?? this.#key(text) ?? this.#calling(text) ?? this.#defaults(text);
  }

  /** With its schema, if only a part of a schema was dumped. */
  #placed(text: string): Refused | null {
    const schema = EXTENSION.exec(text)?.[1] ?? MADE.exec(text)?.[1];
    if (schema === undefined || this.#has(schema)) return null;
    remember(this.#schemas, plainName(schema));
    const { instead = text } = this.#defaults(text) ?? {};
    return {
      instead: `CREATE SCHEMA ${schema}; ${instead}`,
      reason: `the schema ${schema} is not in the file, and is created`,
    };
  }

  #key(text: string): Refused | null {
    const target = FOREIGN_KEY.exec(text)?.[1];
    if (target === undefined) return null;
    const name = qualifiedName(target);
    if (this.#tables.has(lastPart(name))) return null;
    return { reason: `the table ${name} is not in the file` };
  }

  #calling(text: string): Refused | null {
    if (!CALLS.test(text) && !SET_DEFAULT.test(text)) return null;
    const found = [...withoutTexts(text).matchAll(CALLED)];
    const schemas = found.map(([, ofFunction, ofTable]) => ofFunction ?? ofTable ?? '');
    if (schemas.every((schema) => this.#has(schema))) return null;
    // Aliases occur somewhere without a dot after them.
    const aliases = new Set(mentionsOf(text).map(lastPart));
    const absent = schemas.find((schema) => !this.#has(schema) && !aliases.has(plainName(schema)));
    return absent === undefined
      ? null
      : { reason: `it needs the schema ${absent}, which is not in the file` };
  }

  /** The table without defaults that call missing functions. */
  #defaults(text: string): Refused | null {
    if (!TABLE.test(text)) return null;
    const gone: string[] = [];
    const instead = text.replaceAll(DEFAULT, (clause, schema: string, name: string) => {
      if (this.#has(schema)) return clause;
      gone.push(qualifiedName(`${schema}.${name}`));
      return '';
    });
    if (gone.length === 0) return null;
    return { instead, reason: `there is no default ${gone.join()}(): its schema is not in the file` };
  }

  #has(schema: string): boolean {
    return this.#schemas.has(plainName(schema));
  }
}
