/**
 * The architecture and the house style, where the linter (biome.json) cannot check them. Each rule is one
 * function in test/tidy/, says what to do instead, and has its own test there that shows it failing.
 */
import assert from 'node:assert/strict';
import { dirname } from 'node:path';
import { describe, test } from 'node:test';
import { checkBands } from './tidy/band-rules.ts';
import { checkCircles, checkFileCircles } from './tidy/circle-rules.ts';
import { checkDeadExports, checkDeadFiles, checkMigrations } from './tidy/dead-code.ts';
import { checkDocs } from './tidy/doc-rules.ts';
import { checkDurableFiles } from './tidy/durable-rules.ts';
import { checkEngineNames } from './tidy/engine-rules.ts';
import { checkFolderSizes } from './tidy/folder-rules.ts';
import { checkIndexes, checkNarrowing } from './tidy/migration-rules.ts';
import { checkPatience } from './tidy/patience-rules.ts';
import { type Finding, repositoryFiles, type SourceFile } from './tidy/source-files.ts';
import { checkTables } from './tidy/table-rules.ts';
import { checkComments, checkFileNames, checkLeftovers, checkMachineTraces } from './tidy/text-rules.ts';
import { checkWiring } from './tidy/wiring-rules.ts';

const RULES: Readonly<Record<string, (files: readonly SourceFile[]) => Finding[]>> = {
  'imports stay within their bands': checkBands,
  'the wiring is short, and only wires': checkWiring,
  'folders import each other in one direction': checkCircles,
  'no circle of files at run time': checkFileCircles,
  'SQL names the tables of its folder, and of others those in the list': checkTables,
  'engines of databases are named in their folders': checkEngineNames,
  'migrations are numbered without gaps': checkMigrations,
  'migrations take nothing away that the version before needs': checkNarrowing,
  'indexes of tables that exist are built while nodes write': checkIndexes,
  'every file is reached': checkDeadFiles,
  'every export is imported': checkDeadExports,
  'docs lead to what exists': checkDocs,
  'folders are small': checkFolderSizes,
  'no drawers for odds and ends': checkFileNames,
  'comments are at most 110 characters wide': checkComments,
  'small files are durable': checkDurableFiles,
  'programs are waited for longer on a busy host': checkPatience,
  'no leftovers': checkLeftovers,
  'no traces of a registry or a machine': checkMachineTraces,
};

/** Number of comments that begin without a subject. It may fall, never rise. */
const MOST_WITHOUT_SUBJECT = 10;
const WITHOUT_SUBJECT =
  /^\s*(?:\/\*\*|\/\/|\*) (?:What|Who|Whose|Whoever|Whom|Of|With which|To which|In which|That|As|Those|One that|All that) /gm;

describe('tidy', () => {
  const files = repositoryFiles(dirname(import.meta.dirname));

  test('there is something to check', () =>
    assert.ok(files.some(({ path }) => path === 'server/config/config.ts')));

  test('few comments begin without a subject', () => {
    const shown = files.filter(({ path }) => /^(?:server|libs|console|sdk)\/.*(?<!\.test)\.tsx?$/.test(path));
    const count = shown.reduce((sum, { text }) => sum + [...text.matchAll(WITHOUT_SUBJECT)].length, 0);
    assert.ok(count <= MOST_WITHOUT_SUBJECT, `${count} comments begin with What, Who, Of, That, As, …`);
  });

  for (const [name, rule] of Object.entries(RULES)) {
    test(name, () => {
      const said = rule(files).map(({ path, line, message }) => `${path}:${line}  ${message}`);
      if (said.length > 0) assert.fail(`${said.length} to mend\n${said.join('\n')}`);
    });
  }
});
