/**
 * kill -9 at the moment the client reads an acknowledgement: in the same turn in which the first bytes of a
 * 200 arrive. Random kills seldom hit those milliseconds; a store that answers slightly too early fails only
 * in them.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { openSocket, parseResponse } from '../harness/raw-http.ts';
import { Checker } from './check.ts';
import { BUCKETS, chooseSeed, makeBuckets, randomFrom, rounds } from './load.ts';
import { contentOf, Oracle } from './oracle.ts';

/** At least 20: every size comes in every bucket. */
const ROUNDS = rounds(20, 200);
/** In the row; at the limit of the row; in a file; in several frames; several MiB. */
const SIZES = [1, 16_384, 16_385, 300_000, 3_000_000];
const BOUNDARY = 'kill-after-answer';
const env = { CLOUDLET_RATE_REQUESTS: '1000000', CLOUDLET_SWEEP_GRACE_SECONDS: '1' };

interface Put {
  readonly bucket: string;
  readonly name: string;
  readonly size: number;
}

interface Round {
  readonly cloud: CloudProcess;
  readonly key: string;
  readonly oracle: Oracle;
}

/** The whole request, so that nothing is left to send when the answer arrives. */
function requestOf({ bucket, name, size }: Put, number: number, key: string): Buffer {
  const field = (about: string, value: string) =>
    `--${BOUNDARY}\r\nContent-Disposition: form-data; ${about}\r\n\r\n${value}`;
  const body = Buffer.concat([
    Buffer.from(`${field('name="name"', name)}\r\n`),
    Buffer.from(`${field('name="metadata"', JSON.stringify({ w: number }))}\r\n`),
    Buffer.from(field('name="file"; filename="upload.bin"', '')),
    contentOf(number, size),
    Buffer.from(`\r\n--${BOUNDARY}--\r\n`),
  ]);
  const head = [
    `POST /api/buckets/${bucket}/upload HTTP/1.1`,
    `Host: localhost\r\nX-API-Key: ${key}`,
    `Content-Type: multipart/form-data; boundary=${BOUNDARY}`,
    `Content-Length: ${body.length}\r\nConnection: close\r\n\r\n`,
  ];
  return Buffer.concat([Buffer.from(head.join('\r\n')), body]);
}

/** Uploads, and kills the cloud when the answer begins to arrive. Resolves when the connection is closed. */
async function putAndKill({ cloud, key, oracle }: Round, put: Put): Promise<void> {
  const socket = await openSocket(cloud.api);
  const write = oracle.begin({ kind: 'put', ...put });
  let answer = '';
  socket.setEncoding('utf8').on('data', (text: string) => {
    answer += text;
    if (answer.startsWith('HTTP/1.1 2')) cloud.kill();
  });
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.write(requestOf(put, write.number, key));
  await closed;
  if (answer === '') return;
  const { status, body } = parseResponse(answer);
  assert.equal(status, 200, answer);
  // The answer is one write: the bytes read are all of it.
  oracle.end(write, { status, versionId: body.version_id });
}

test('what was acknowledged a moment before kill -9 is all there', async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'cloudlet-kill-after-'));
  const seed = chooseSeed();
  t.diagnostic(`FAULTS_SEED=${seed}`);
  const random = randomFrom(seed);
  const oracle = new Oracle();
  const checker = new Checker(oracle);
  const cloud = await CloudProcess.start({ dataDir, env });
  t.after(() => cloud.crash());
  const key = (await new Client(cloud.api).newUser()).key ?? '';
  await makeBuckets(new Client(cloud.api, key));
  for (let round = 0; round < ROUNDS; round++) {
    const before = oracle.count('acked');
    const puts = Array.from({ length: 1 + (round % 4) }, (_, i) => ({
      bucket: BUCKETS[(round + i) % BUCKETS.length]?.name ?? '',
      name: random() < 0.5 ? 'overwritten' : `once/${round}-${i}`,
      size: SIZES[(round + i * 2) % SIZES.length] ?? 1,
    }));
    await Promise.all(
      puts.map(async (put) => {
        await sleep(random() * 5);
        await putAndKill({ cloud, key, oracle }, put).catch((error) => {
          // Killed before this client could connect.
          if (!(error instanceof Error && 'code' in error)) throw error;
        });
      }),
    );
    await cloud.crash();
    assert.ok(oracle.count('acked') > before, 'the kill came before any answer');
    await cloud.start();
    await checker.check(new Client(cloud.api, key));
  }
  await checker.check(new Client(cloud.api, key), { allBytes: true });
  t.diagnostic(`${oracle.count('acked')} writes stored, none lost in ${ROUNDS} kills`);
  await cloud.stop();
  oracle.close();
  rmSync(dataDir, { recursive: true });
});
