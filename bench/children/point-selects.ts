/**
 * Reads one row by its key repeatedly, on several connections of the driver that programs use. Prints the
 * number of answers per second, and the p99 of one, ms.
 */
import { createConnection } from 'mysql2/promise';
import { Client } from 'pg';
import { childInput } from '../child.ts';

interface Input {
  readonly uri: string;
  readonly connections: number;
  readonly seconds: number;
}

const ROWS = 10_000;
const { uri, connections, seconds } = childInput<Input>();

async function open(): Promise<(id: number) => Promise<unknown>> {
  if (uri.startsWith('mysql:')) {
    const driver = await createConnection(uri);
    return (id) => driver.execute('SELECT x FROM points WHERE id = ?', [id]);
  }
  const driver = new Client(uri);
  await driver.connect();
  return (id) => driver.query({ name: 'point', text: 'SELECT x FROM points WHERE id = $1', values: [id] });
}

const readers = await Promise.all(Array.from({ length: connections }, open));
const times: number[] = [];
const began = performance.now();
await Promise.all(
  readers.map(async (read) => {
    for (let at = began; at - began < seconds * 1000; ) {
      await read(1 + Math.floor(Math.random() * ROWS));
      const now = performance.now();
      times.push(now - at);
      at = now;
    }
  }),
);
const perSecond = times.length / ((performance.now() - began) / 1000);
times.sort((one, other) => one - other);
console.log(JSON.stringify({ perSecond, p99: times[Math.floor(times.length * 0.99)] }));
process.exit();
