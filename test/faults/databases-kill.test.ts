/** Writers of a database while its process, or all of Cloudlet, is killed. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '@libsql/client';
import { MongoClient } from 'mongodb';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';

const WRITERS = 16;
const KILLS = 6;

/** Elsewhere the process to kill cannot be determined. */
const skip = existsSync('/proc/self/cmdline') ? false : 'needs /proc';

/** Its processes that have a tenant's file open. */
function childrenOf(cloud: CloudProcess, engine: string): number[] {
  return readdirSync('/proc').flatMap((name) => {
    const pid = Number(name);
    if (!Number.isInteger(pid)) return [];
    try {
      const isChild = readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`engines.${engine}.child`);
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

interface Made {
  readonly database_id: string;
  readonly connection: { readonly uri: string; readonly password: string };
}

/** A connection of an engine's own driver to a list of numbers. */
interface Numbers {
  add(number: number): Promise<unknown>;
  /** The count of each number. */
  times(): Promise<Map<number, number>>;
  close(): Promise<void>;
}

const ENGINES: Readonly<Record<string, (cloud: CloudProcess, made: Made) => Promise<Numbers>>> = {
  sqlite: async (cloud, { database_id, connection }) => {
    const driver = createClient({ url: `${cloud.data}/db/${database_id}/`, authToken: connection.password });
    await driver.execute('CREATE TABLE IF NOT EXISTS numbers (number INTEGER)');
    return {
      add: (number) => driver.execute({ sql: 'INSERT INTO numbers VALUES (?)', args: [number] }),
      times: async () => {
        const { rows } = await driver.execute('SELECT number, count(*) AS n FROM numbers GROUP BY number');
        assert.equal((await driver.execute('PRAGMA integrity_check')).rows[0]?.integrity_check, 'ok');
        return new Map(rows.map(({ number, n }) => [Number(number), Number(n)]));
      },
      close: async () => driver.close(),
    };
  },
  mongodb: async (_, { connection }) => {
    const driver = new MongoClient(connection.uri);
    const numbers = driver.db().collection<{ number: number }>('numbers');
    await numbers.createIndex({ number: 1 }, { unique: true });
    return {
      add: (number) => numbers.insertOne({ number }),
      times: async () => {
        const found = await numbers.aggregate([{ $group: { _id: '$number', n: { $sum: 1 } } }]).toArray();
        for (const { _id } of found)
          await assert.rejects(numbers.insertOne({ number: _id }), { code: 11000 });
        return new Map(found.map(({ _id, n }) => [_id, n]));
      },
      close: () => driver.close(true),
    };
  },
};

/** Writes its own numbers, each once, until stopped; keeps the acknowledged ones. */
class Writer {
  readonly acknowledged: number[] = [];
  #isStopped = false;

  async run(first: number, numbers: () => Numbers): Promise<void> {
    for (let number = first; !this.#isStopped; number += WRITERS) {
      try {
        await numbers().add(number);
        this.acknowledged.push(number);
      } catch {
        // It may exist or not; it is never used again.
        await sleep(20);
      }
    }
  }

  stop(): void {
    this.#isStopped = true;
  }
}

for (const [engine, connect] of Object.entries(ENGINES)) {
  test(`${engine}: everything that was acknowledged is there, and nothing twice`, { skip }, async (t) => {
    const cloud = await CloudProcess.start();
    t.after(() => cloud.stop());
    const user = await new Client(cloud.api).newUser();
    const { body: made } = await user.call('/api/databases', { json: { name: 'numbers', engine } });
    let numbers = await connect(cloud, made);
    t.after(() => numbers.close());
    const writers = Array.from({ length: WRITERS }, () => new Writer());
    const running = writers.map((writer, index) => writer.run(index, () => numbers));
    const count = () => writers.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0);
    for (let kills = 1; kills <= KILLS; kills++) {
      const before = count();
      await eventually('more numbers', () => count() > before + 3 * WRITERS);
      if (kills === KILLS / 2) {
        await cloud.crash();
        await cloud.start();
        const old = numbers;
        numbers = await connect(cloud, made);
        await old.close();
      } else {
        process.kill(await eventually('a process to kill', () => childrenOf(cloud, engine)[0]), 'SIGKILL');
      }
    }
    const before = count();
    await eventually('more numbers', () => count() > before + 3 * WRITERS);
    for (const writer of writers) writer.stop();
    await Promise.all(running);
    const times = await numbers.times();
    for (const number of writers.flatMap(({ acknowledged }) => acknowledged)) {
      assert.equal(times.get(number), 1, `number ${number}`);
    }
    assert.deepEqual(
      [...times].filter(([, n]) => n > 1),
      [],
    );
  });
}
