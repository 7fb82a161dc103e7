/** Things that have one home: the environment, the time, randomness, SQL, shells. */
import { readCode } from './code-text.ts';
import { readImports } from './imports.ts';
import { type Finding, findAll, isCode, isTest, lineAt, type SourceFile } from './source-files.ts';

const NO_SHELL = 'no shell: use execFile or spawn with a list of arguments';

interface PlaceRule {
  readonly pattern: RegExp;
  readonly home: (path: string) => boolean;
  readonly message: string;
}

/** Files that draw randomness themselves, and why they may. */
const RANDOMNESS_ALLOWED: Readonly<Record<string, string>> = {
  'server/ids.ts': 'the home of randomness',
};

const isServerCode = (path: string) => path.startsWith('server/') && isCode(path) && !isTest(path);

const TIME = new RegExp(
  [
    /\bDate\s*\.\s*now\b/,
    /\bnew\s+Date\s*(?:\(\s*\)|(?!\s*[(\w]))/,
    /(?<!new\s+)(?<![.\w])Date\s*\(/,
    /\bperformance\s*\.\s*now\b/,
    /\bprocess\s*\.\s*(?:hrtime|uptime)\b/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'g',
);

const RANDOMNESS =
  /\bMath\s*\.\s*random\b|\b(?:random(?:Bytes|UUID|Int|Fill|FillSync)|getRandomValues|generateKeySync)\s*\(/g;

const RULES: readonly PlaceRule[] = [
  {
    pattern: /\bprocess\s*\.\s*env\b/g,
    home: (path) => path === 'server/config.ts' || path.startsWith('scripts/') || isTest(path),
    message: 'process.env is read in server/config.ts only; take the setting from Config',
  },
  {
    pattern: TIME,
    home: (path) => path === 'server/clock.ts' || !isServerCode(path),
    message: 'the time comes from a Clock (server/clock.ts)',
  },
  {
    pattern: RANDOMNESS,
    home: (path) => path in RANDOMNESS_ALLOWED || !isServerCode(path),
    message: 'randomness comes from server/ids.ts (randomSecret, randomBase62, newId)',
  },
  {
    pattern: /\bshell\s*:\s*true\b/g,
    home: (path) => !isCode(path),
    message: NO_SHELL,
  },
];

/** Uses of the environment, the time, randomness or a shell outside their homes. */
export function checkPlaces(files: readonly SourceFile[]): Finding[] {
  return files
    .filter(({ path }) => isCode(path))
    .flatMap(({ path, text }) => {
      const { code } = readCode(text);
      return RULES.filter(({ home }) => !home(path)).flatMap(({ pattern, message }) =>
        findAll({ path, text: code }, pattern, message),
      );
    });
}

/** `exec` and `execSync`, which hand their text to a shell. */
export function checkShells(files: readonly SourceFile[]): Finding[] {
  return files
    .filter(({ path }) => isCode(path))
    .flatMap((file) =>
      readImports(file)
        .filter(({ specifier, names }) => /^(?:node:)?child_process$/.test(specifier) && names.some(isShell))
        .map(({ line }) => ({ path: file.path, line, message: NO_SHELL })),
    );
}

function isShell(name: string): boolean {
  return name === 'exec' || name === 'execSync' || name === '*';
}

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

function isSqlHome(path: string): boolean {
  return (
    /(?:\/|-)store\.ts$/.test(path) || /^server\/(?:metadata\/|drivers\/(?:metadata|engine)-)/.test(path)
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
          message: 'SQL lives in a store.ts, metadata/ or drivers/{metadata,engine}-*',
        })),
    );
}

/** Default exports, which let every importer invent its own name. Tool configurations must have one. */
export function checkDefaultExports(files: readonly SourceFile[]): Finding[] {
  return files
    .filter(({ path }) => isCode(path) && !/\.config\.ts$/.test(path))
    .flatMap(({ path, text }) => {
      const pattern = /\bexport\s+default\b|\bexport\s*\{[^}]*\bas\s+default\b/g;
      return findAll(
        { path, text: readCode(text).code },
        pattern,
        'no default exports: export the noun by its name',
      );
    });
}
