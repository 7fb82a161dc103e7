/** The edges of two nodes of a cluster: the requests that one forwards, and their handling at the host. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request as requestOf } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'node:test';
import { WebSocket } from 'ws';
import { eventually } from '../../testing/eventually.ts';
import { act, asAlice, call, openCluster } from '../../testing/two-edges.ts';
import { FORWARDED_HEADER } from './signed-calls.ts';

test('the host answers as if it had been asked, and both know the request by one id', async (t) => {
  const { host, front } = await openCluster(t);
  const answer = await act(front.api, { 'x-note': 'kept', 'x-forwarded-for': '192.0.2.9' });
  assert.deepEqual([answer.status, await answer.json()], [200, { by: 'host' }]);
  const [seen] = host.seen;
  assert.equal(seen?.requestId, answer.headers.get('x-request-id'));
  await eventually(() => front.logged.length > 0 && host.logged.length > 0);
  assert.deepEqual([front.logged, host.logged], [[seen?.requestId], [seen?.requestId]]);
  assert.deepEqual([seen?.body, seen?.principal.accountId], [{ a: 1 }, 7]);
  assert.equal(seen?.headers['x-note'], 'kept');
  assert.equal(seen?.headers['x-forwarded-for'], undefined);
  assert.equal(front.seen.length, 0);
  assert.deepEqual(await (await call(`${front.api}/api/here`)).json(), { by: 'front' });
});

test('limits are taken once, where the caller is', async (t) => {
  const { front } = await openCluster(t);
  const answers = [];
  for (let i = 0; i < 11; i++) answers.push(await act(front.api));
  assert.deepEqual(
    answers.map(({ status }) => status),
    [...Array(10).fill(200), 429],
  );
  assert.deepEqual(
    answers.slice(0, 3).map(({ headers }) => headers.get('x-ratelimit-remaining')),
    ['9', '8', '7'],
  );
});

test('who has no permission is refused before the host hears of it', async (t) => {
  const { front, lose } = await openCluster(t);
  lose([]);
  const answer = await fetch(`${front.api}/api/act`, { method: 'POST' });
  assert.equal(answer.status, 401);
});

test("a client's own header is not believed, and is not passed on", async (t) => {
  const { host, front } = await openCluster(t);
  const fields = { origin: 'api', address: '192.0.2.1', isOperator: true, from: 'front-1', to: 'host-1' };
  const forged = `${Buffer.from(JSON.stringify(fields)).toString('base64url')}.AAAA`;
  for (const url of [host.api, front.api]) {
    const answer = await act(url, { [FORWARDED_HEADER]: forged });
    assert.equal(answer.status, 200);
  }
  for (const { address, principal } of host.seen)
    assert.deepEqual([address, principal.via], ['127.0.0.1', 'key']);
  const stolen = await fetch(`${host.api}/api/here`, { headers: { [FORWARDED_HEADER]: forged } });
  assert.equal(stolen.status, 401);
});

test('a request that a node has passed on goes no further', async (t) => {
  const { host, front } = await openCluster(t);
  const signed = host.calls.sign(
    { method: 'GET', url: '/api/rows' },
    {
      origin: 'api',
      address: '192.0.2.1',
      requestId: 'req-x',
      isOperator: false,
      host: 'x',
      isSecure: false,
    },
    'front-1',
  );
  const answer = await call(`${front.api}/api/rows`, { headers: { [FORWARDED_HEADER]: signed } });
  assert.deepEqual(
    [answer.status, ((await answer.json()) as { code: string }).code],
    [503, 'host_unreachable'],
  );
  assert.equal(host.seen.length, 0);
});

test('without a host rows are read here, and the rest is refused with nothing done', async (t) => {
  const { front, view, lose } = await openCluster(t);
  const closed = createServer().listen(0, '127.0.0.1');
  await once(closed, 'listening');
  const { port } = closed.address() as AddressInfo;
  await new Promise((resolve) => closed.close(resolve));
  for (const nodes of [
    [],
    [{ ...view, state: 'lost' as const }],
    [{ ...view, url: `http://127.0.0.1:${port}` }],
  ]) {
    lose(nodes);
    const refused = await act(front.api);
    const problem = (await refused.json()) as { code: string; detail: string };
    assert.deepEqual([refused.status, problem.code], [503, 'host_unreachable']);
    assert.match(problem.detail, /had no effect/);
    assert.equal(refused.headers.get('retry-after'), '5');
    assert.deepEqual(await (await call(`${front.api}/api/rows`)).json(), { by: 'front' });
  }
});

test('when the connection breaks after the call its outcome is unknown, but a read had none', async (t) => {
  const { host, front } = await openCluster(t);
  for (const [method, code] of [
    ['POST', 'operation_interrupted'],
    ['GET', 'host_unreachable'],
  ] as const) {
    const asked = call(`${front.api}/api/hold`, { method });
    await eventually(() => host.held.length > 0);
    host.held.length = 0;
    host.server.closeAllConnections();
    const answer = await asked;
    assert.deepEqual([answer.status, ((await answer.json()) as { code: string }).code], [503, code]);
  }
});

test('connections to the host are kept for the next call', async (t) => {
  const { host, front } = await openCluster(t);
  let connections = 0;
  host.server.on('connection', () => connections++);
  for (let i = 0; i < 5; i++) await (await act(front.api)).text();
  assert.equal(connections, 1);
});

test('a read whose kept connection the host closes just then is sent again, a change is not', async (t) => {
  const { host, front } = await openCluster(t);
  await (await act(front.api)).text();
  let requests = 0;
  host.server.on('request', () => requests++);
  const closeNext = () =>
    host.server.prependOnceListener('request', (request: IncomingMessage) => request.socket.destroy());
  closeNext();
  assert.deepEqual(await (await call(`${front.api}/api/rows`)).json(), { by: 'host' });
  assert.equal(requests, 2);
  await (await act(front.api)).text();
  closeNext();
  const changed = await act(front.api);
  assert.equal(((await changed.json()) as { code: string }).code, 'operation_interrupted');
  assert.equal(requests, 4);
});

test('calls to a host that is about to stop take no connection that it may close', async (t) => {
  const { host, front, view, lose } = await openCluster(t);
  await (await act(front.api)).text();
  let connections = 0;
  host.server.on('connection', () => connections++);
  lose([{ ...view, state: 'draining' }]);
  for (let i = 0; i < 3; i++) await (await act(front.api)).text();
  assert.equal(connections, 3);
});

test('a client that goes away ends its call at the host', async (t) => {
  const { host, front } = await openCluster(t);
  const left = new AbortController();
  const asked = call(`${front.api}/api/hold`, { method: 'POST', signal: left.signal });
  const signal = await eventually(() => host.held[0]);
  left.abort();
  await assert.rejects(asked);
  await eventually(() => signal.aborted);
});

test('who has taken all places gives way to others', async (t) => {
  const { host, front } = await openCluster(t);
  const held = Array.from({ length: 8 }, () => call(`${front.api}/api/hold`, { method: 'POST' }));
  await eventually(() => host.held.length === held.length);
  const more = await act(front.api);
  assert.deepEqual([more.status, ((await more.json()) as { code: string }).code], [503, 'overloaded']);
  const answer = await act(front.api, { 'x-api-key': 'bob' });
  assert.equal(answer.status, 200);
  const given = await Promise.race(held);
  assert.deepEqual(((await given.json()) as { code: string }).code, 'operation_interrupted');
  host.server.closeAllConnections();
  await Promise.all(held);
});

test('a body that waits for 100 Continue gets it, and comes whole', async (t) => {
  const { host, front } = await openCluster(t);
  const headers = { ...asAlice, 'content-type': 'application/json', expect: '100-continue' };
  const request = requestOf(`${front.api}/api/act`, { method: 'POST', headers });
  request.flushHeaders();
  await once(request, 'continue');
  request.end('{"late":true}');
  const [answer] = await once(request, 'response');
  answer.resume();
  assert.equal(answer.statusCode, 200);
  assert.deepEqual(host.seen[0]?.body, { late: true });
});

test('WebSockets are piped; their tickets are for the host to redeem', async (t) => {
  const { front, lose } = await openCluster(t);
  const url = `${front.api.replace('http', 'ws')}/api/socket`;
  for (const [path, headers] of [
    ['', asAlice],
    ['?ticket=of-alice', {}],
  ] as const) {
    const socket = new WebSocket(url + path, { headers });
    const [message] = await once(socket, 'message');
    assert.equal(String(message), 'host:7');
    socket.close();
    await once(socket, 'close');
  }
  assert.equal(await statusOf(new WebSocket(`${url}?ticket=another`)), 401);
  lose([]);
  assert.equal(await statusOf(new WebSocket(url, { headers: asAlice })), 503);
});

test('what the data origin has of databases comes by the API of the host', async (t) => {
  const { front, lose } = await openCluster(t);
  const post = () =>
    fetch(`${front.data}/db/db-1/v2/pipeline`, {
      method: 'POST',
      headers: { authorization: 'Bearer x' },
      body: '{}',
    });
  const answer = await post();
  assert.deepEqual([answer.status, await answer.text()], [200, 'host:v2/pipeline']);
  lose([]);
  const refused = await post();
  assert.deepEqual(
    [refused.status, ((await refused.json()) as { code: string }).code],
    [503, 'host_unreachable'],
  );
});

/** For the refusal. */
async function statusOf(socket: WebSocket): Promise<number> {
  socket.on('error', () => {});
  const [, response] = await once(socket, 'unexpected-response');
  response.resume();
  return response.statusCode;
}
