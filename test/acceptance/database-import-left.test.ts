/** A failed import into a new MariaDB table, while another session uses the table. */
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { createConnection } from 'mysql2/promise';
import { NO_MARIADB } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';

const skip = globSync('build/programs/mariadb-*/usr').length > 0 ? false : NO_MARIADB;
const BOUNDARY = 'rows-of-a-file';
/** More than the import reads to guess the columns. */
const FIRST_ROWS = 60_000;

let cloud: CloudProcess;
before(async () => {
  if (skip === false) cloud = await CloudProcess.start();
});
after(() => cloud?.stop());

test('the table that is left is named', { skip }, async () => {
  const user = await new Client(cloud.api).newUser();
  const { body: made } = await user.call('/api/databases', { json: { name: 'left', engine: 'mysql' } });
  const driver = await createConnection(String(made.connection.uri));
  const isMade = Promise.withResolvers<void>();
  async function* form() {
    const head = `--${BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="a.csv"\r\n\r\n`;
    yield Buffer.from(`${head}id,n\n${Array.from({ length: FIRST_ROWS }, (_, n) => `${n},1\n`).join('')}`);
    await isMade.promise;
    yield Buffer.from(`x,not a number\n\r\n--${BOUNDARY}--\r\n`);
  }
  try {
    const sent = fetch(`${cloud.api}/api/databases/${made.database_id}/rows/import?table=held`, {
      method: 'POST',
      headers: {
        'x-api-key': user.key ?? '',
        'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
      },
      body: ReadableStream.from(form()),
      duplex: 'half',
    });
    await eventually('the table is made', async () => {
      const [rows] = await driver.query("SHOW TABLES LIKE 'held'");
      return (rows as unknown[]).length === 1;
    });
    // A transaction that has read a table prevents its deletion.
    await driver.query('START TRANSACTION');
    await driver.query('SELECT * FROM held');
    isMade.resolve();
    const response = await sent;
    const problem = (await response.json()) as Record<'code' | 'detail' | 'hint', string>;
    assert.deepEqual([response.status, problem.code], [400, 'load_failed'], JSON.stringify(problem));
    assert.match(problem.detail, /Nothing was imported. The new table held could not be removed again/);
    assert.match(problem.hint, /Drop the table held/);
    await driver.query('ROLLBACK');
    const [rows] = await driver.query('SELECT count(*) AS n FROM held');
    assert.deepEqual(rows, [{ n: 0 }]);
  } finally {
    isMade.resolve();
    await driver.end();
  }
});
