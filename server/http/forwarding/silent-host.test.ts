/** A host that is silent or stands still, and connections to its ports that another node forwards. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as requestOf } from 'node:http';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { WebSocket } from 'ws';
import { eventually } from '../../testing/eventually.ts';
import { act, asAlice, call, openCluster } from '../../testing/two-edges.ts';

test('a host that has fallen silent is not waited for', async (t) => {
  const { host, front, view, lose } = await openCluster(t);
  const asked = call(`${front.api}/api/slow`);
  await eventually(() => host.held.length > 0);
  lose([{ ...view, beatAgeMs: 4000 }]);
  for (const answer of [asked, call(`${front.api}/api/rows`)])
    assert.deepEqual(await (await answer).json(), { by: 'front' });
  const refused = await act(front.api);
  assert.equal(((await refused.json()) as { code: string }).code, 'host_unreachable');
  lose([view]);
  assert.deepEqual(await (await act(front.api)).json(), { by: 'host' });
});

test('a host whose heartbeats are late is asked, and used while it responds', async (t) => {
  const { host, front, view, lose } = await openCluster(t);
  const waiting = new AbortController();
  const held = call(`${front.api}/api/hold`, { method: 'POST', signal: waiting.signal });
  let isCut = false;
  held.then(
    () => {
      isCut = true;
    },
    () => {},
  );
  await eventually(() => host.held.length > 0);
  lose([{ ...view, beatAgeMs: 9000 }], { responds: true });
  assert.deepEqual(await (await act(front.api)).json(), { by: 'host' });
  const socket = await front.connect(25_432, '192.0.2.7');
  assert.equal(String(Buffer.concat(await socket.toArray())), '25432 from 192.0.2.7\n');
  // Longer than two checks of calls in progress.
  await new Promise((resolve) => setTimeout(resolve, 1500));
  assert.equal(isCut, false);
  waiting.abort();
});

test('calls at a host that falls silent end, unless bytes still move', async (t) => {
  const { host, front, view, lose } = await openCluster(t);
  const url = new URL(`${front.api}/api/act`);
  const headers = { ...asAlice, 'content-type': 'application/json', 'transfer-encoding': 'chunked' };
  const came = once(host.server, 'request');
  const upload = requestOf(url, { method: 'POST', headers });
  const answered = once(upload, 'response');
  const dripping = setInterval(() => upload.write(' '), 50);
  t.after(() => clearInterval(dripping));
  await came;
  const asked = call(`${front.api}/api/hold`, { method: 'POST' });
  const read = call(`${front.api}/api/hold`);
  await eventually(() => host.held.length === 2);
  lose([{ ...view, beatAgeMs: 4000 }]);
  const codes = await Promise.all(
    [asked, read].map(async (each) => ((await (await each).json()) as { code: string }).code),
  );
  assert.deepEqual(codes, ['operation_interrupted', 'host_unreachable']);
  await new Promise((resolve) => setTimeout(resolve, 1500));
  clearInterval(dripping);
  upload.end('1');
  const [answer] = await answered;
  answer.resume();
  assert.equal(answer.statusCode, 200);
});

test('a connection to a port goes to the same port of the host, which knows the client', async (t) => {
  const { host, front, view, lose } = await openCluster(t);
  const socket = await front.connect(25_432, '192.0.2.7');
  assert.equal(String(Buffer.concat(await socket.toArray())), '25432 from 192.0.2.7\n');
  await eventually(() => host.logged.includes('req-1'));
  await assert.rejects(front.connect(25_433, '192.0.2.7'), { code: 'host_unreachable' });
  for (const nodes of [[], [{ ...view, beatAgeMs: 4000 }]]) {
    lose(nodes);
    await assert.rejects(front.connect(25_432, '192.0.2.7'), { code: 'host_unreachable' });
  }
  const { hostname, port } = new URL(host.api);
  const asked = requestOf({ hostname, port, path: '/ports/25432', headers: SWITCH });
  asked.end();
  const [answer] = await once(asked, 'response');
  answer.resume();
  assert.equal(answer.statusCode, 404, 'nobody else reaches a port by this way');
});

test('calls at a host that stands still end once it is lost', async (t) => {
  const { host, front, gone } = await openCluster(t);
  const asked = call(`${front.api}/api/hold`, { method: 'POST' });
  const socket = new WebSocket(`${front.api.replace('http', 'ws')}/api/socket`, { headers: asAlice });
  const closed = once(socket, 'close');
  await once(socket, 'message');
  await eventually(() => host.held.length > 0);
  gone.add('host-1');
  const answer = await asked;
  const { code } = (await answer.json()) as { code: string };
  assert.deepEqual([answer.status, code], [503, 'operation_interrupted']);
  const [closeCode, reason] = await closed;
  assert.deepEqual([closeCode, String(reason)], [1012, HOST_GONE]);
});

test('a WebSocket is closed with a code when its host is killed', async (t) => {
  const { host, front } = await openCluster(t);
  const connections: Socket[] = [];
  host.server.on('connection', (socket: Socket) => connections.push(socket));
  const socket = new WebSocket(`${front.api.replace('http', 'ws')}/api/socket`, { headers: asAlice });
  const closed = once(socket, 'close');
  await once(socket, 'message');
  for (const connection of connections) connection.resetAndDestroy();
  const [code, reason] = await closed;
  assert.deepEqual([code, String(reason)], [1012, HOST_GONE]);
});

const SWITCH = { connection: 'upgrade', upgrade: 'cloudlet-port' };
const HOST_GONE = 'The node with the machines and databases does not answer; connect again';
