/**
 * The folder that owns a table, whose SQL may name it, and its limit, according to
 * docs/internals/metadata.md.
 */
import { type Finding, isCode, isTest, lineAt, type SourceFile } from './source-files.ts';

const LIST = 'docs/internals/metadata.md';
const HEAD = '| folder | its tables | named in the SQL of others |';
const BOUNDS = '| tables | bound per account |';
const SQL_HOME =
  /^server\/.*(?:\/store|-store|-sql)\.ts$|^server\/(?:metadata\/(?!migrations\/)|drivers\/(?:metadata-|engines\/))/;
const TABLE = /\b(?:FROM|JOIN|INTO|UPDATE)\s+([a-z_]+)/g;

interface Tables {
  readonly owner: ReadonlyMap<string, string>;
  /** `folder table` of all others that may. */
  readonly shared: ReadonlySet<string>;
}

const words = (cell: string) => [...cell.matchAll(/`([a-z_]+)\/?`/g)].map(([, name = '']) => name);

/** Third column: `` `vms`, `images`: recovery, billing; `plans`: … `` */
function readShared(cell: string): string[] {
  return cell.split(';').flatMap((part) => {
    const [tables = '', folders = ''] = part.split(':');
    return words(tables).flatMap((table) => folders.split(',').map((folder) => `${folder.trim()} ${table}`));
  });
}

function readList(text: string): Tables {
  const from = text.indexOf(HEAD);
  const rows = from < 0 ? [] : (text.slice(from).split('\n\n', 1)[0]?.split('\n').slice(2) ?? []);
  const cells = rows.map((row) => row.split('|').slice(1, 4));
  const owner = cells.flatMap(([folder = '', tables = '']) =>
    words(tables).map((table) => [table, words(folder)[0] ?? ''] as const),
  );
  return { owner: new Map(owner), shared: new Set(cells.flatMap(([, , shared = '']) => readShared(shared))) };
}

/** Tables without a limit for one account, and lines about missing tables. */
function checkBounds(text: string, tables: readonly string[]): string[] {
  const from = text.indexOf(BOUNDS);
  const rows = from < 0 ? [] : (text.slice(from).split('\n\n', 1)[0]?.split('\n').slice(2) ?? []);
  const bounded = rows.flatMap((row) => {
    const [, names = '', bound = ''] = row.split('|');
    return bound.trim() === '' ? [] : words(names);
  });
  return [
    ...tables
      .filter((table) => !bounded.includes(table))
      .map((table) => `nothing bounds the rows of ${table}`),
    ...bounded.filter((table) => !tables.includes(table)).map((table) => `no table ${table} to bound`),
  ];
}

/** SQL that names a table of another folder without being listed, and unneeded lines of the list. */
export function checkTables(files: readonly SourceFile[]): Finding[] {
  const list = files.find(({ path }) => path === LIST);
  const schema = files.find(({ path }) => path === 'server/metadata/schema.sql');
  if (list === undefined || schema === undefined) return [];
  const { owner, shared } = readList(list.text);
  const tables = [...schema.text.matchAll(/^CREATE TABLE (\w+)/gm)].map(([, name = '']) => name);
  const at = lineAt(list.text, Math.max(0, list.text.indexOf(HEAD)));
  const ownerless = tables.filter((table) => !owner.has(table)).map((table) => `no folder owns ${table}`);
  const gone = [...owner.keys()]
    .filter((table) => !tables.includes(table))
    .map((table) => `no table ${table}`);
  const unused = new Set(shared);
  const strangers = files
    .filter(({ path }) => isCode(path) && !isTest(path) && SQL_HOME.test(path))
    .flatMap(({ path, text }) => {
      const folder = path.split('/')[1] ?? '';
      return [...text.matchAll(TABLE)].flatMap(({ 1: table = '', index }) => {
        const holder = owner.get(table);
        if (holder === undefined || holder === folder || folder === 'drivers') return [];
        unused.delete(`${folder} ${table}`);
        if (shared.has(`${folder} ${table}`)) return [];
        const message = `${table} is a table of ${holder}/: ask there, or list it in ${LIST}`;
        return [{ path, line: lineAt(text, index), message }];
      });
    });
  const stale = [...unused].map((entry) => `no SQL of ${entry.replace(' ', '/ names ')}`);
  return [
    ...strangers,
    ...[...ownerless, ...gone, ...stale, ...checkBounds(list.text, tables)].map((message) => ({
      path: LIST,
      line: at,
      message,
    })),
  ];
}
