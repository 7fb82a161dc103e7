/**
 * Sends one MongoDB command repeatedly on several connections, as bytes: a driver's own work is not counted.
 * Prints the number of answers per second, and the p99 of one, ms.
 */
import { bodyOf, messageOf, RawMongo } from '../../server/testing/raw-mongo.ts';
import { childInput } from '../child.ts';

interface Input {
  readonly uri: string;
  readonly work: 'find' | 'insert';
  readonly connections: number;
  readonly seconds: number;
}

const DOCUMENTS = 10_000;
const { uri, work, connections, seconds } = childInput<Input>();
const { port, username, password, pathname } = new URL(uri);
const database = pathname.slice(1);

async function open(): Promise<RawMongo> {
  const connection = await RawMongo.open(Number(port));
  const { ok } = await connection.logIn(database, username, password);
  if (ok !== 1) throw new Error('the log-in failed');
  return connection;
}

function command() {
  if (work === 'insert') return { insert: 'inserted', documents: [{ x: 'hello' }], $db: database };
  return { find: 'points', filter: { _id: Math.floor(Math.random() * DOCUMENTS) }, limit: 1, $db: database };
}

const all = await Promise.all(Array.from({ length: connections }, open));
const times: number[] = [];
const began = performance.now();
await Promise.all(
  all.map(async (connection) => {
    for (let at = began; at - began < seconds * 1000; ) {
      const reply = await connection.send(messageOf(bodyOf(command())));
      if (reply.ok !== 1) throw new Error(JSON.stringify(reply));
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
