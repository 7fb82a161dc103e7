/** SQL has one home. Time, randomness, the environment and shells are the linter's: biome.json. */
import { readCode } from './code-text.ts';
import { type Finding, isCode, isTest, lineAt, type SourceFile } from './source-files.ts';

const isServerCode = (path: string) => path.startsWith('server/') && isCode(path) && !isTest(path);

const SQL = new RegExp(
  [
    /SELECT\s[\s\S]*?(?:\bFROM\b|\()/,
    /INSERT\s+(?:OR\s+\w+\s+)?INTO\s/,
    /UPDATE\s+\S+\s+SET\s/,
    /DELETE\s+FROM\s/,
    /CREATE\s+(?:TABLE|INDEX|UNIQUE)\s/,
    /WITH\s+\w+\s+AS\s/,
    /(?:PRAGMA|SAVEPOINT)\s/,
    /BEGIN\s*(?:IMMEDIATE|;|$)/,
  ]
    .map(({ source }) => `^\\s*${source}`)
    .join('|'),
  'i',
);

export function isSqlHome(path: string): boolean {
  return (
    /(?:\/store|-store|-sql)\.ts$/.test(path) ||
    /^server\/(?:metadata\/|drivers\/(?:metadata|engine)-)/.test(path)
  );
}

/** SQL outside the stores and the engines. A string counts when it begins like a statement. */
export function checkSql(files: readonly SourceFile[]): Finding[] {
  return files
    .filter(({ path }) => isServerCode(path) && !isSqlHome(path))
    .flatMap(({ path, text }) =>
      readCode(text)
        .strings.filter(({ value }) => SQL.test(value))
        .map(({ index }) => ({
          path,
          line: lineAt(text, index),
          message: 'SQL lives in a store.ts, *-store.ts, *-sql.ts, metadata/ or drivers/{metadata,engine}-*',
        })),
    );
}
