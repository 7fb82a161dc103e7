/** Statements for rows of wide tables, and for values that do not fit a column. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Table } from '../../../databases/engine.ts';
import { isAppError } from '../../../platform/errors.ts';
import { MYSQL_ROWS } from '../mysql/rows.ts';
import { POSTGRESQL_ROWS } from '../postgresql/rows.ts';
import { SQLITE_ROWS } from '../sqlite/rows.ts';

const WIDE = 1500;
const names = Array.from({ length: WIDE }, (_, at) => `c${at}`);

function tableOf(columns: Table['columns']): Table {
  return { name: 't', schema: null, type: 'table', columns, indexes: [] } as unknown as Table;
}

test('a row of a wide table is found without a look at all columns for each', () => {
  let looks = 0;
  const columns = names.map((name) => ({
    get name() {
      looks++;
      return name;
    },
    type: 'int',
    nullable: false,
    default: null,
    primary_key: true,
  }));
  const old = Object.fromEntries(names.map((name) => [name, 1]));
  for (const language of [SQLITE_ROWS, POSTGRESQL_ROWS, MYSQL_ROWS]) {
    const table = tableOf(columns as unknown as Table['columns']);
    looks = 0;
    for (let row = 0; row < 10; row++) language.change(table, { action: 'update', old, values: old });
    assert.ok(looks < 20 * WIDE, `${looks} looks at ${WIDE} columns for 10 rows`);
  }
});

test('MariaDB makes no number of a text that is none, neither for the key nor for what was read', () => {
  const column = (name: string, type: string, isKey: boolean) => ({
    name,
    type,
    nullable: !isKey,
    default: null,
    primary_key: isKey,
  });
  const table = tableOf([column('id', 'int(11)', true), column('n', 'decimal(9,2)', false)] as never);
  const remove = (old: Readonly<Record<string, unknown>>) =>
    MYSQL_ROWS.change(table, { action: 'delete', old });
  for (const id of ['1 or 1=1', '', 'x', true, [1], {}])
    assert.throws(
      () => remove({ id }),
      (error) => isAppError(error, 'invalid_request'),
    );
  assert.throws(
    () => remove({ id: 1, n: '2x' }),
    (error) => isAppError(error, 'invalid_request'),
  );
  assert.deepEqual(remove({ id: '-5', n: '2.50' }).params, ['-5', '2.50']);
  assert.deepEqual(remove({ id: 5, n: null }).params, [5, null]);
});
