/**
 * Two free accounts do everything that a hostile one can, in parallel: endless statements in all their
 * databases, answers stored for Idempotency-Keys, empty objects with long metadata, databases deleted so that
 * their last dumps stay, bodies that are announced and hardly arrive, and invalid session cookies. It runs
 * for `seconds`, and prints the number of answers of each, by status.
 */
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { childInput } from '../child.ts';

interface Attacker {
  readonly key: string;
  /** Ids of its databases; one of its buckets is named `junk`. */
  readonly databases: readonly string[];
}

interface Input {
  readonly api: string;
  readonly attackers: readonly Attacker[];
  readonly seconds: number;
}

const { api, attackers, seconds } = childInput<Input>();
const ENDLESS = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c';
const LARGE = 'SELECT hex(zeroblob(2000000))';
const ENDLESS_EACH = 2;
const SLOW_BODIES = 9;
const ANNOUNCED_BYTES = 4 * 2 ** 20;

const counts: Record<string, Record<string, number>> = {};
const over = new AbortController();
let made = 0;

function note(what: string, status: number | string): void {
  counts[what] ??= {};
  const of = counts[what];
  of[status] = (of[status] ?? 0) + 1;
}

/** Repeats it; a call that is refused immediately is not repeated in a hot loop. */
async function again(what: string, work: () => Promise<Response>): Promise<void> {
  while (!over.signal.aborted) {
    try {
      const response = await work();
      // A separate computer would not make the cloud wait for its memory.
      await response.body?.pipeTo(new WritableStream());
      note(what, response.status);
      if (response.status >= 400) await sleep(20);
    } catch {
      if (!over.signal.aborted) note(what, 'cut off');
      await sleep(20);
    }
  }
}

function ask(key: string, path: string, init: RequestInit & { json?: unknown } = {}): Promise<Response> {
  const { json, headers, ...rest } = init;
  const body = json === undefined ? {} : { method: 'POST', body: JSON.stringify(json) };
  const type = json === undefined ? {} : { 'content-type': 'application/json' };
  return fetch(api + path, {
    ...body,
    ...rest,
    headers: { ...(key === '' ? {} : { 'x-api-key': key }), ...type, ...(headers as Record<string, string>) },
    signal: over.signal,
  });
}

const query = (id: string) => `/api/databases/${id}/query`;

async function makeAndDelete(key: string): Promise<Response> {
  const response = await ask(key, '/api/databases', { json: { name: `passing-${process.pid}-${made++}` } });
  if (response.status !== 201) return response;
  const { database_id: id } = (await response.json()) as { database_id: string };
  const statement = 'CREATE TABLE t AS SELECT randomblob(1000000) AS x';
  await (await ask(key, query(id), { json: { statement, read_only: false } })).arrayBuffer();
  return ask(key, `/api/databases/${id}`, { method: 'DELETE' });
}

function emptyObject(key: string): Promise<Response> {
  const form = new FormData();
  form.set('name', `${made++}-${'n'.repeat(800)}`);
  form.set('metadata', JSON.stringify({ long: 'm'.repeat(1500) }));
  form.set('file', new Blob([]), 'empty');
  return ask(key, '/api/buckets/junk/upload', { method: 'POST', body: form });
}

/** Announces a body, and occasionally sends a byte of it. */
async function slowBody({ key, databases: [id = ''] }: Attacker): Promise<void> {
  const { hostname, port } = new URL(api);
  while (!over.signal.aborted) {
    const socket = connect(Number(port), hostname);
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.on('error', () => {});
    const head = ['content-type: application/json', `content-length: ${ANNOUNCED_BYTES}`];
    socket.write(
      `POST ${query(id)} HTTP/1.1\r\nhost: x\r\nx-api-key: ${key}\r\n${head.join('\r\n')}\r\n\r\n{`,
    );
    const drip = setInterval(() => socket.write(' '), 200);
    const stop = () => socket.destroy();
    over.signal.addEventListener('abort', stop);
    await closed;
    clearInterval(drip);
    over.signal.removeEventListener('abort', stop);
    note('slow bodies', 'closed');
    await sleep(20);
  }
}

const cookie = `cloudlet_session=${'x'.repeat(43)}`;
const work: Promise<void>[] = [];
for (const attacker of attackers) {
  const { key, databases } = attacker;
  // One is left for the stored answers: after endless statements none would ever arrive.
  const [first = '', ...others] = databases;
  for (const id of others)
    for (let i = 0; i < ENDLESS_EACH; i++)
      work.push(again('endless statements', () => ask(key, query(id), { json: { statement: ENDLESS } })));
  const kept = () => ({
    json: { statement: LARGE },
    headers: { 'idempotency-key': `kept-${process.pid}-${made++}` },
  });
  work.push(
    again('kept answers', () => ask(key, query(first), kept())),
    again('databases deleted', () => makeAndDelete(key)),
    again('empty objects', () => emptyObject(key)),
    again('cookies', () => ask('', '/api/account', { headers: { cookie } })),
    ...Array.from({ length: SLOW_BODIES }, () => slowBody(attacker)),
  );
}
await sleep(seconds * 1000);
over.abort();
await Promise.all(work);
console.log(JSON.stringify(counts));
