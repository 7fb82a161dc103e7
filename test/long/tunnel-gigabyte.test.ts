/**
 * A tunnel transfers 1 GiB in each direction to and from a database, complete, while the cloud's memory stays
 * constant.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { createCipheriv, createHash } from 'node:crypto';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { after, test } from 'node:test';
import { NO_POSTGRESQL } from '../../scripts/installed.ts';
import { CliUser } from '../acceptance/cli-kit.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';

const MIB = 2 ** 20;
const ROW_BYTES = 256 * 1024;
const ROWS = (1024 * MIB) / ROW_BYTES;
const GROWTH_BYTES = 96 * MIB;
const pattern = '../../build/programs/postgresql-*/usr/lib/postgresql/*/bin/psql';
const PSQL = globSync(join(import.meta.dirname, pattern))[0];
const skip = PSQL === undefined ? NO_POSTGRESQL : false;

let cloud: CloudProcess | undefined;
let user: CliUser | undefined;
let tunnel: ChildProcess | undefined;
after(async () => {
  tunnel?.kill('SIGINT');
  user?.remove();
  await cloud?.stop();
});

/** 1 GiB of base64 in lines, the same each time. */
async function* lines(): AsyncGenerator<Buffer> {
  const cipher = createCipheriv('aes-128-ctr', Buffer.alloc(16, 7), Buffer.alloc(16));
  const zeros = Buffer.alloc((ROW_BYTES / 4) * 3);
  for (let row = 0; row < ROWS; row++) yield Buffer.from(`${cipher.update(zeros).toString('base64')}\n`);
}

/** Of a process, in bytes. */
const residentBytes = (pid: number | undefined): number => {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
};

/** The maximum that the work adds to the memory of the cloud and of the client; and its duration. */
async function growthDuring(work: () => Promise<unknown>) {
  const began = performance.now();
  const now = () => ({ cloud: residentBytes(cloud?.pid), client: residentBytes(tunnel?.pid) });
  const [before, most] = [now(), now()];
  const timer = setInterval(() => {
    const { cloud: ofCloud, client } = now();
    Object.assign(most, { cloud: Math.max(most.cloud, ofCloud), client: Math.max(most.client, client) });
  }, 100);
  await work().finally(() => clearInterval(timer));
  const seconds = Math.round((performance.now() - began) / 1000);
  return { cloud: most.cloud - before.cloud, client: most.client - before.client, seconds };
}

/** A database behind `db forward`, and psql at its port. */
async function openLarge() {
  // A COPY is one statement.
  cloud = await CloudProcess.start({ env: { CLOUDLET_DATABASE_STATEMENT_SECONDS: '3600' } });
  const signedIn = await CliUser.signedIn(cloud.api);
  user = signedIn;
  const api = (await CheckedClient.open(cloud.api)).as(signedIn.key);
  const json = { name: 'large', engine: 'postgresql', size_limit_mb: 4096 };
  const { connection } = await api.expect(201, '/api/databases', { json });
  tunnel = user.start(['db', 'forward', 'large', '0:5432', '--json']);
  let out = '';
  tunnel.stdout?.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  const address = await eventually('the port', () => /"address":"([^"]+)"/.exec(out)?.[1]);
  const [PGHOST, PGPORT] = address.split(':');
  const { username: PGUSER, password: PGPASSWORD, database: PGDATABASE } = connection;
  const env = { PATH: process.env.PATH, PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE };
  return (statement: string) => {
    const words = ['-X', '-q', '-v', 'ON_ERROR_STOP=1', '-c', statement];
    const child = spawn(String(PSQL), words, { env });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    return { child, done: once(child, 'close').then(([code]) => assert.equal(code, 0, said)) };
  };
}

test('1 GiB goes into a database by COPY and comes back the same', { skip }, async (t) => {
  const psql = await openLarge();
  const made = psql('CREATE TABLE t (id serial, data text); ALTER TABLE t ALTER data SET STORAGE EXTERNAL');
  made.child.stdin.end();
  await made.done;
  const [sent, came] = [createHash('sha256'), createHash('sha256')];
  const up = await growthDuring(async () => {
    const { child, done } = psql('COPY t (data) FROM STDIN');
    const counted = async function* () {
      for await (const line of lines()) {
        sent.update(line);
        yield line;
      }
    };
    await pipeline(Readable.from(counted(), { objectMode: false, highWaterMark: MIB }), child.stdin);
    await done;
  });
  let bytes = 0;
  const down = await growthDuring(async () => {
    const { child, done } = psql('COPY (SELECT data FROM t ORDER BY id) TO STDOUT');
    child.stdin.end();
    for await (const piece of child.stdout as AsyncIterable<Buffer>) {
      came.update(piece);
      bytes += piece.length;
    }
    await done;
  });
  t.diagnostic(JSON.stringify({ up, down }));
  assert.equal(bytes, ROWS * (ROW_BYTES + 1));
  assert.equal(came.digest('hex'), sent.digest('hex'));
  for (const [name, grown] of Object.entries({ up, down })) {
    assert.ok(grown.cloud < GROWTH_BYTES, `${name}: the cloud grew by ${grown.cloud}`);
    assert.ok(grown.client < GROWTH_BYTES, `${name}: the client grew by ${grown.client}`);
  }
});
