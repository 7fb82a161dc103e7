/** An account that sends large calls and never ends them: other accounts continue, and memory is bounded. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, type Client as Driver } from '@libsql/client';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { openSocket, parseResponse } from '../harness/raw-http.ts';
import { eventually } from '../harness/waiting.ts';

const MIB = 2 ** 20;
const CALL_BYTES = Math.floor(9.9 * MIB);
/** Without a limit there would be 3,000. */
const MOST_MORE_BYTES = 600 * MIB;

interface Tenant {
  readonly user: Client;
  readonly id: string;
  readonly password: string;
  readonly driver: Driver;
}

let cloud: CloudProcess;
let attacker: Tenant;
let victim: Tenant;
before(async () => {
  // A call without further data would be cut.
  cloud = await CloudProcess.start({ env: { CLOUDLET_SLOW_BODY_SECONDS: '600' } });
  attacker = await newTenant();
  victim = await newTenant();
});
after(async () => {
  for (const tenant of [attacker, victim]) tenant?.driver.close();
  await cloud.stop();
});

async function newTenant(): Promise<Tenant> {
  const user = await new Client(cloud.api).newUser();
  const { status, body } = await user.call('/api/databases', { json: { name: 'shop' } });
  assert.equal(status, 201);
  const { uri, password } = body.connection;
  const { origin, pathname } = new URL(uri);
  const driver = createClient({ url: origin + pathname, authToken: password });
  await driver.execute('CREATE TABLE t (a)');
  return { user, id: body.database_id, password, driver };
}

function residentBytes(): number {
  const status = readFileSync(`/proc/${cloud.pid}/status`, 'latin1');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}

function headOf({ id, password }: Tenant, framing: string): string {
  const lines = [
    `POST /db/${id}/v3/pipeline HTTP/1.1`,
    'Host: localhost',
    `Authorization: Bearer ${password}`,
  ];
  return `${[...lines, 'Content-Type: application/json', framing].join('\r\n')}\r\n\r\n`;
}

/** Sends a call except its end. The response is collected in the result. */
function unfinished(socket: Socket, tenant: Tenant, framing: 'length' | 'chunks'): Buffer[] {
  const answer: Buffer[] = [];
  socket.on('data', (piece: Buffer) => answer.push(piece));
  const body = Buffer.alloc(CALL_BYTES - 1, ' ');
  const [header, start] =
    framing === 'length'
      ? [`Content-Length: ${CALL_BYTES}`, '']
      : ['Transfer-Encoding: chunked', `${body.length.toString(16)}\r\n`];
  socket.write(headOf(tenant, header) + start);
  socket.write(body);
  return answer;
}

for (const [framing, calls] of [
  ['length', 300],
  ['chunks', 100],
] as const) {
  test(`large calls that never end take only their own account's share: ${framing}`, async () => {
    const before = residentBytes();
    const sockets: Socket[] = [];
    const answers: Buffer[][] = [];
    let most = before;
    let served = 0;
    const serveVictim = async () => {
      await victim.driver.execute({ sql: 'INSERT INTO t VALUES (?)', args: ['x'.repeat(MIB)] });
      served++;
      most = Math.max(most, residentBytes());
    };
    for (let i = 0; i < calls; i++) {
      const socket = await openSocket(cloud.data);
      sockets.push(socket);
      answers.push(unfinished(socket, attacker, framing));
      if (i % 10 === 9) await serveVictim();
    }
    for (let i = 0; i < 5; i++) {
      await serveVictim();
      await sleep(50);
    }
    assert.equal(served, calls / 10 + 5);
    assert.ok(most - before < MOST_MORE_BYTES, `${(most - before) / MIB} MiB more`);
    for (const socket of sockets) socket.destroy();
    const texts = answers.map((pieces) => Buffer.concat(pieces).toString('utf8'));
    const refused = texts.filter((text) => text !== '').map(parseResponse);
    assert.ok(refused.length > calls / 2, `${refused.length} were refused`);
    for (const { status, body, headers } of refused) {
      assert.deepEqual([status, body.code, headers.get('retry-after')], [503, 'overloaded', '1']);
    }
    // The reserved memory is released: the same account is admitted again.
    await eventually('the attacker gets in again', async () => {
      const [answer] = await Promise.allSettled([
        attacker.driver.execute({ sql: 'SELECT ?', args: ['x'.repeat(9 * MIB)] }),
      ]);
      return answer.status === 'fulfilled';
    });
  });
}

test('nine accounts whose large calls never end do not keep another out', async () => {
  const sockets: Socket[] = [];
  let served = 0;
  const serveVictim = async (bytes: number) => {
    await victim.driver.execute({ sql: 'INSERT INTO t VALUES (?)', args: ['x'.repeat(bytes)] });
    served++;
  };
  for (let i = 0; i < 9; i++) {
    const tenant = await newTenant();
    // Larger ones first, then those that still fit.
    for (const bytes of [...Array(6).fill(CALL_BYTES), 5e6, 2.5e6, 1.2e6, 6e5, 3e5, 1.5e5]) {
      const socket = await openSocket(cloud.data);
      socket.on('error', () => {});
      sockets.push(socket);
      socket.write(headOf(tenant, `Content-Length: ${bytes}`));
      socket.write(Buffer.alloc(bytes - 1, ' '));
    }
    tenant.driver.close();
    await serveVictim(200_000);
    await serveVictim(2_000_000);
  }
  for (let i = 0; i < 10; i++) await serveVictim(2_000_000);
  assert.equal(served, 28);
  for (const socket of sockets) socket.destroy();
});
