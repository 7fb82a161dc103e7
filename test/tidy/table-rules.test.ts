import assert from 'node:assert/strict';
import { test } from 'node:test';
import { locations, sample } from './sample.ts';
import { checkTables } from './table-rules.ts';

const ALL_BOUNDED = '| `vms` | quota |\n| `plans` | administrators only |';
const list = (rows: string, bounds: string) =>
  `# Architecture\n\n| folder | its tables | named in the SQL of others |\n|---|---|---|\n${rows}\n\n` +
  `| tables | bound per account |\n|---|---|\n${bounds}\n\nMore.\n`;
const repository = (rows: string, sql: string, bounds = ALL_BOUNDED) =>
  sample({
    'docs/internals/metadata.md': list(rows, bounds),
    'server/metadata/schema.sql': 'CREATE TABLE vms (\n  id\n);\nCREATE TABLE plans (\n  id\n);\n',
    'server/billing/store.ts': `read('${sql}');`,
  });
const found = (rows: string, sql: string) => locations(checkTables(repository(rows, sql)));
const OWNERS = '| `compute/` | `vms` | |\n| `billing/` | `plans` | |';
const SHARED = '| `compute/` | `vms` | `vms`: billing |\n| `billing/` | `plans` | |';

test('a table of another folder is named only where the list says so, and the list says nothing else', () => {
  const both = 'SELECT 1 FROM plans JOIN vms';
  assert.deepEqual(found(OWNERS, 'SELECT 1 FROM plans'), []);
  assert.deepEqual(found(OWNERS, both), ['server/billing/store.ts:1']);
  assert.deepEqual(found(SHARED, both), []);
  assert.deepEqual(found(SHARED, 'UPDATE plans SET id = 1'), ['docs/internals/metadata.md:3'], 'not needed');
  assert.deepEqual(
    found('| `billing/` | `plans` | |', 'SELECT 1 FROM plans'),
    ['docs/internals/metadata.md:3'],
    'no owner',
  );
  const dropped = `${OWNERS}\n| \`storage/\` | \`blobs\` | |`;
  assert.deepEqual(found(dropped, 'SELECT 1 FROM plans'), ['docs/internals/metadata.md:3'], 'no such table');
});

test('a table without a bound for what one account may add is refused, and a bound of no table', () => {
  const messages = (bounds: string) =>
    checkTables(repository(OWNERS, 'SELECT 1 FROM plans', bounds)).map(({ message }) => message);
  assert.deepEqual(messages(ALL_BOUNDED), []);
  assert.deepEqual(messages('| `vms` | quota |\n| `plans` | |'), ['nothing bounds the rows of plans']);
  assert.deepEqual(messages(`${ALL_BOUNDED}\n| \`gone\` | 7 |`), ['no table gone to bound']);
});
