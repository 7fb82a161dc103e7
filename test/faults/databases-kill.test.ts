/** Writers of a SQLite database while its process, or all of Cloudlet, is killed. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, type Client as Driver } from '@libsql/client';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';

const WRITERS = 16;
const KILLS = 6;

/** Elsewhere nobody can tell which process to kill. */
const skip = existsSync('/proc/self/cmdline') ? false : 'needs /proc';

/** Its processes that have a tenant's file open. */
function childrenOf(cloud: CloudProcess): number[] {
  return readdirSync('/proc').flatMap((name) => {
    const pid = Number(name);
    if (!Number.isInteger(pid)) return [];
    try {
      const isChild = readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('engine-sqlite/child');
      return isChild && isBelow(pid, cloud.pid) ? [pid] : [];
    } catch {
      return [];
    }
  });
}

function isBelow(pid: number, ancestor: number): boolean {
  if (pid === ancestor) return true;
  const parent = Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
  return parent > 1 && isBelow(parent, ancestor);
}

/** Writes its own numbers, each once, until told to stop; keeps those that were acknowledged. */
class Writer {
  readonly acknowledged: number[] = [];
  refused = 0;
  #isStopped = false;

  async run(first: number, driver: () => Driver): Promise<void> {
    for (let number = first; !this.#isStopped; number += WRITERS) {
      try {
        await driver().execute({ sql: 'INSERT INTO numbers VALUES (?)', args: [number] });
        this.acknowledged.push(number);
      } catch {
        // It may be there or not; its number is never used again.
        this.refused++;
        await sleep(20);
      }
    }
  }

  stop(): void {
    this.#isStopped = true;
  }
}

test('every row that was acknowledged is there, and none twice', { skip }, async (t) => {
  const cloud = await CloudProcess.start();
  t.after(() => cloud.stop());
  const user = await new Client(cloud.api).newUser();
  const { body: made } = await user.call('/api/databases', { json: { name: 'numbers' } });
  const connect = () =>
    createClient({ url: `${cloud.data}/db/${made.database_id}/`, authToken: made.connection.password });
  let driver = connect();
  await driver.execute('CREATE TABLE numbers (number INTEGER)');
  const writers = Array.from({ length: WRITERS }, () => new Writer());
  const running = writers.map((writer, index) => writer.run(index, () => driver));
  const count = () => writers.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0);
  for (let kills = 1; kills <= KILLS; kills++) {
    const before = count();
    await eventually('more rows', () => count() > before + 3 * WRITERS);
    if (kills === KILLS / 2) {
      await cloud.crash();
      await cloud.start();
      driver = connect();
    } else {
      const pid = await eventually('a process to kill', () => childrenOf(cloud)[0]);
      process.kill(pid, 'SIGKILL');
    }
  }
  const before = count();
  await eventually('more rows', () => count() > before + 3 * WRITERS);
  for (const writer of writers) writer.stop();
  await Promise.all(running);
  const { rows } = await driver.execute('SELECT number, count(*) AS times FROM numbers GROUP BY number');
  const times = new Map(rows.map(({ number, times }) => [Number(number), Number(times)]));
  for (const number of writers.flatMap(({ acknowledged }) => acknowledged)) {
    assert.equal(times.get(number), 1, `number ${number}`);
  }
  assert.deepEqual(
    [...times].filter(([, n]) => n > 1),
    [],
  );
  assert.deepEqual((await driver.execute('PRAGMA integrity_check')).rows[0]?.integrity_check, 'ok');
});
