/**
 * Names of database engines occur only in the engines' own folders: other code uses traits
 * (server/databases/engine-description.ts), so that a new engine is its folder and hardly more.
 */
import { type Finding, findAll, isCode, isTest, type SourceFile } from './source-files.ts';

/** The same words as names of other things. A branch on them is not a branch on an engine. */
const METADATA = 'the store of the metadata';
/** Files that name engines, with the reason. */
const NAMED_IN: Readonly<Record<string, string>> = {
  'server/databases/engine.ts': 'the list of the API',
  'server/metadata/identity.ts': 'clouds of earlier versions',
  'server/databases/engine-description.ts': 'dialects of SQL',
  'console/src/pages/databases/queries/grammar.ts': 'dialects of SQL',
  'console/src/pages/databases/queries/query-editor.tsx': 'dialects of SQL',
  'console/src/pages/databases/queries/run.ts': 'dialects of SQL',
  'console/src/pages/databases/queries/statements.ts': 'dialects of SQL',
  'cli/tunnels/db-clients.ts': 'programs',
  'server/drivers/managed-server/processes/server-users.ts': 'user ids, which are given once and for ever',
  'server/drivers/managed-server/programs/unpacked-programs.ts': 'parts of the set-up',
  'server/drivers/preparation/preparing.ts': 'parts of the set-up',
  'server/drivers/server-proxy/login-watch.ts': 'wire protocols',
  'server/cloud/foundations.ts': METADATA,
  'server/commands/migrate.ts': METADATA,
  'server/metadata/migrations/migrations.ts': METADATA,
  'server/status/schema.ts': METADATA,
  'server/status/status.ts': METADATA,
};

const ABOUT = /^server\/drivers\/engines\/([^/]+)\/about\.ts$/;
const PRODUCT = /^(?:server|cli|console\/src)\/(?!drivers\/(?:engines|metadata-[a-z]+)\/)/;

export function checkEngineNames(files: readonly SourceFile[]): Finding[] {
  const names = files.map(({ path }) => ABOUT.exec(path)?.[1]).filter((name) => name !== undefined);
  if (names.length === 0) return [];
  const any = `(?:${names.join('|')})`;
  // A word, or the key of a table.
  const mention = new RegExp(`(['"])${any}\\1|(?<=[{,\\s])${any}(?=:\\s)`, 'g');
  const branch = new RegExp(`(?:[!=]==|\\bcase) (['"])${any}\\1`, 'g');
  const product = files.filter(({ path }) => PRODUCT.test(path) && isCode(path) && !isTest(path));
  const found = product.flatMap((file) => {
    const why = NAMED_IN[file.path];
    if (why === METADATA) return [];
    if (why === undefined)
      return findAll(file, mention, "an engine's name stands in its own folder: ask for a trait of it");
    return findAll(file, branch, 'ask for a trait of the engine, not for its name');
  });
  const unused = Object.keys(NAMED_IN).filter(
    (path) => !product.some((file) => file.path === path && findAll(file, mention, '').length > 0),
  );
  return [
    ...found,
    ...unused.map((path) => ({ path, line: 1, message: 'names no engine: take it off engine-rules.ts' })),
  ];
}
