import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { after, before, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { WebSocket as WsClient } from 'ws';
import { NOBODY, type Principal, type Scope } from '../../calls/principal.ts';
import { BodyMemory } from '../../http/bodies/body-memory.ts';
import type { Authenticates } from '../../http/caller.ts';
import { WebSockets } from '../../http/connections/web-sockets.ts';
import { createEdge } from '../../http/edge.ts';
import { TrustedProxies } from '../../http/exchange.ts';
import { CallerLimits, RateLimiter } from '../../http/limits/rate-limits.ts';
import { systemClock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { testTickets } from '../../testing/account-fixture.ts';
import { eventually } from '../../testing/eventually.ts';
import { ScriptedConsoles } from '../../testing/scripted-consoles.ts';
import { testDoor, testKeys } from '../../testing/test-door.ts';
import { Consoles } from './console.ts';
import { consoleRoutes, consoleSocket } from './console-routes.ts';

const VM = 'vm-a';
const TOKEN = 't'.repeat(43);
const PAGE = 'p'.repeat(43);
const SESSION = { cookie: `cloudlet_session=${TOKEN}`, 'cloudlet-session': PAGE };
const KEYS: Readonly<Record<string, Principal>> = {
  owner: key(1, ['compute:write']),
  reader: key(1, ['compute:read']),
  stranger: key(2, ['*']),
  flood: key(3, ['*']),
  other: key(1, ['compute:*']),
};

function key(accountId: number, scopes: readonly Scope[]): Principal {
  return { ...NOBODY, accountId, scopes, via: 'key', credentialId: `k-${accountId}-${scopes.join()}` };
}

let engine: ScriptedConsoles;
let consoles: Consoles;
let state = 'running';
const ended = new Set<string>();
let sockets: WebSockets;
let app: FastifyInstance;
let base = '';
let port = 0;

async function start(pingSeconds = 30): Promise<void> {
  engine = new ScriptedConsoles();
  engine.running.add(VM);
  consoles = new Consoles({ hypervisor: engine });
  const find = (principal: Principal, vmId: string) => {
    if (principal.accountId !== 2 && vmId === VM) return { vm_id: VM, state };
    throw new AppError('vm_not_found', 'You have no such virtual machine');
  };
  const tickets = testTickets(systemClock);
  const parts = { find, consoles, tickets, hypervisor: engine, apiUrl: () => `http://${base}` };
  const keys = testKeys(KEYS, ended);
  const authenticate: Authenticates['authenticate'] = ({ session, ...sent }) => {
    const isSession = session?.cookies.includes(TOKEN) && session.token === PAGE;
    return isSession ? { ...key(1, ['*']), via: 'session' } : keys.authenticate(sent);
  };
  const accounts = { ...keys, authenticate };
  const perCaller = new RateLimiter({ name: 'requests', requests: 200, windowSeconds: 600 }, systemClock);
  const [limiter, proxies] = [new CallerLimits(perCaller, perCaller), new TrustedProxies(['127.0.0.1'])];
  const common = {
    clock: systemClock,
    log: pino({ level: 'silent' }),
    accounts,
    control: new WeakSet(),
    publicUrl: 'https://cloud.example',
    tickets,
    door: testDoor({ proxies, limiter, headers: { 'x-content-type-options': 'nosniff' } }),
    limitsCalls: true,
  };
  app = createEdge({
    bodies: new BodyMemory(2 ** 26, systemClock),
    ...common,
    routes: consoleRoutes(parts),
    routeLimiters: new Map(),
    trustedProxies: [],
    idempotency: undefined as never, // no request here has a key of its own or is answered early
    operations: undefined as never,
  });
  sockets = new WebSockets({
    ...common,
    routes: [consoleSocket(parts)],
    pingSeconds,
    recheckSeconds: 0.1,
  });
  sockets.serve(app);
  await app.listen({ host: '127.0.0.1', port: 0 });
  ({ port } = app.server.address() as AddressInfo);
  base = `127.0.0.1:${port}`;
}

before(() => start());
after(() => app.close());
beforeEach(() => {
  state = 'running';
  ended.clear();
});

interface Opening {
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly vmId?: string;
}

/** An open console that collects its output. */
async function view({ headers = { 'x-api-key': 'owner' }, query = '' }: Opening = {}) {
  const client = new WsClient(`ws://${base}/api/vms/${VM}/console${query}`, { headers });
  const seen = { text: '', code: 0 };
  client.on('message', (data: Buffer, isBinary) => {
    assert.ok(isBinary);
    seen.text += data.toString('utf8');
  });
  client.on('close', (code) => Object.assign(seen, { code }));
  await once(client, 'open');
  return { client, seen };
}

/** The problem in the response to an upgrade. */
async function refusal({ headers = {}, query = '', vmId = VM }: Opening) {
  const client = new WsClient(`ws://${base}/api/vms/${vmId}/console${query}`, { headers });
  client.on('error', () => {});
  const [, response] = await once(client, 'unexpected-response');
  let text = '';
  for await (const chunk of response) text += chunk;
  assert.match(response.headers['content-type'], /^application\/problem\+json/);
  assert.equal(response.headers['x-content-type-options'], 'nosniff');
  const problem = JSON.parse(text);
  assert.equal(problem.request_id, response.headers['x-request-id']);
  return [response.statusCode, problem.code];
}

async function newTicket(): Promise<{ ticket: string; expires_at: string; url: string }> {
  const init = { method: 'POST', headers: { 'x-api-key': 'owner' } };
  const response = await fetch(`http://${base}/api/vms/${VM}/console-tickets`, init);
  assert.equal(response.status, 201);
  return (await response.json()) as never;
}

test('bytes go both ways, binary and text, and two viewers see the same', async () => {
  const [one, two] = [await view(), await view()];
  engine.latest.say('grüße\n');
  one.client.send(Buffer.from('ls\n'));
  two.client.send('pwd ü\n');
  await eventually(() => engine.latest.written.length === 2);
  assert.deepEqual(engine.latest.written.toSorted(), ['ls\n', 'pwd ü\n']);
  await eventually(() => one.seen.text.endsWith('grüße\n') && two.seen.text.endsWith('grüße\n'));
  one.client.close();
  two.client.close();
  const late = await view();
  await eventually(() => late.seen.text.endsWith('grüße\n'));
  late.client.close();
});

test('a browser opens it with a ticket, once, and with the address it was given', async () => {
  const { url, ticket, expires_at } = await newTicket();
  assert.equal(url, `ws://${base}/api/vms/${VM}/console?ticket=${ticket}`);
  assert.match(expires_at, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
  const browser = new WebSocket(url); // Node's own client, which sends no key, like a browser
  browser.binaryType = 'arraybuffer';
  await once(browser, 'open');
  browser.send('typed');
  await eventually(() => engine.latest.written.includes('typed'));
  browser.close();
  assert.deepEqual(await refusal({ query: `?ticket=${ticket}` }), [401, 'invalid_ticket']);
});

test('a ticket counts for its own machine, from its own origin', async () => {
  const { ticket } = await newTicket();
  const elsewhere = { origin: 'https://evil.example' };
  assert.deepEqual(await refusal({ query: `?ticket=${ticket}`, headers: elsewhere }), [
    403,
    'cross_site_request',
  ]);
  assert.deepEqual(await refusal({ query: `?ticket=${ticket}` }), [401, 'invalid_ticket'], 'used up');
  const { ticket: second } = await newTicket();
  assert.deepEqual(await refusal({ query: `?ticket=${second}`, vmId: 'vm-b' }), [401, 'invalid_ticket']);
  assert.deepEqual(await refusal({ query: `?ticket=${second}` }), [401, 'invalid_ticket'], 'used up');
  for (const origin of [`http://${base}`, 'https://cloud.example']) {
    const { client } = await view({
      headers: { origin },
      query: `?ticket=${(await newTicket()).ticket}`,
    });
    client.close();
  }
});

test('whoever may not is told so before the upgrade', async () => {
  const cases: readonly [Opening, number, string][] = [
    [{}, 401, 'missing_api_key'],
    [{ headers: { 'x-api-key': 'nonsense' } }, 401, 'invalid_api_key'],
    [{ headers: { 'x-api-key': 'reader' } }, 403, 'scope_required'],
    [{ headers: { 'x-api-key': 'stranger' } }, 404, 'vm_not_found'],
    [{ headers: { 'x-api-key': 'owner' }, vmId: 'vm-b' }, 404, 'vm_not_found'],
    [{ headers: { 'x-api-key': 'owner', origin: 'null' } }, 403, 'cross_site_request'],
    [{ headers: { 'x-api-key': 'owner', origin: 'http://127.0.0.1:1' } }, 403, 'cross_site_request'],
    [{ headers: SESSION }, 403, 'cross_site_request'],
    [{ query: '?ticket=' }, 401, 'invalid_ticket'],
  ];
  for (const [opening, status, code] of cases) {
    assert.deepEqual(await refusal(opening), [status, code], JSON.stringify(opening));
  }
  const headers = { ...SESSION, origin: `http://${base}` };
  (await view({ headers })).client.close();
});

test('a machine that does not run has no console', async () => {
  for (const word of ['created', 'stopped', 'error', 'deleting']) {
    state = word;
    assert.deepEqual(await refusal({ headers: { 'x-api-key': 'owner' } }), [409, 'vm_not_running'], word);
  }
});

test('requests are counted, and too many are refused', async () => {
  const ask = async () => (await refusal({ headers: { 'x-api-key': 'flood' }, vmId: 'vm-b' }))[0];
  for (let i = 0; i < 200; i++) assert.equal(await ask(), 404); // one is returned every 3 s
  for (let i = 0; (await ask()) !== 429; i++) assert.ok(i < 100);
});

test('wrong keys behind a trusted proxy use up the limit of their client alone', async () => {
  const wrong = (from: string) => refusal({ headers: { 'x-api-key': 'x', 'x-forwarded-for': from } });
  for (let i = 0; (await wrong('192.0.2.1'))[0] !== 429; i++) assert.ok(i < 300);
  assert.equal((await wrong('192.0.2.2'))[0], 401);
});

test('without a WebSocket the address says that one is needed', async () => {
  const url = `http://${base}/api/vms/${VM}/console`;
  const response = await fetch(url, { headers: { 'x-api-key': 'owner' } });
  assert.deepEqual([response.status, response.headers.get('upgrade')], [426, 'websocket']);
  assert.equal(((await response.json()) as { code: string }).code, 'upgrade_required');
  assert.equal((await fetch(url, { headers: { 'x-api-key': 'stranger' } })).status, 404);
  assert.equal((await fetch(url)).status, 401);
});

/** The status line of the response, and the code of the problem. */
async function raw(text: string): Promise<[string, string | undefined]> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(text);
  let answer = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    answer += chunk;
  });
  await eventually(() => answer.includes('"code"'));
  socket.destroy();
  return [answer.slice(9, 12), /"code":"(\w+)"/.exec(answer)?.[1]];
}

test('an offer of another protocol, or at another address, is an ordinary request', async () => {
  const head = `Host: localhost\r\nX-API-Key: owner\r\nConnection: Upgrade\r\n`;
  assert.deepEqual(await raw(`GET /api/vms/${VM}/console HTTP/1.1\r\n${head}Upgrade: h2c\r\n\r\n`), [
    '426',
    'upgrade_required',
  ]);
  assert.deepEqual(await raw(`GET /api/nothing HTTP/1.1\r\n${head}Upgrade: websocket\r\n\r\n`), [
    '404',
    'not_found',
  ]);
  assert.deepEqual(await raw(`GET /api/vms/${VM}/console HTTP/1.1\r\n${head}Upgrade: websocket\r\n\r\n`), [
    '400',
    'bad_http',
  ]);
});

test('a frame of more than 64 KiB ends the viewer with 1009, the guest sees nothing of it', async () => {
  const { client, seen } = await view();
  const before = engine.latest.written.length;
  client.send(Buffer.alloc(64 * 1024 + 1));
  await eventually(() => seen.code !== 0);
  assert.equal(seen.code, 1009);
  assert.equal(engine.latest.written.length, before);
});

test('a guest that takes nothing holds its viewers input up, not our memory', async () => {
  const arrived: Socket[] = [];
  app.server.once('connection', (socket) => arrived.push(socket));
  const { client } = await view();
  const takes = Promise.withResolvers<void>();
  engine.latest.takes = takes.promise;
  const frame = Buffer.alloc(60_000, 'x');
  for (let i = 0; i < 1000; i++) client.send(frame);
  const read = () => arrived[0]?.bytesRead ?? 0;
  for (let last = -1; last !== read(); await sleep(200)) last = read();
  assert.ok(read() > 0 && read() < 1_000_000, `${read()} of 60,000,000 bytes were read`);
  takes.resolve();
  engine.latest.takes = Promise.resolve();
  client.terminate();
});

test('a viewer that does not read is closed, and costs the others nothing', async () => {
  const good = await view();
  const slow = await view();
  slow.client.pause();
  const piece = Buffer.alloc(60_000, 'y');
  // Until the kernel accepts no more for it and 1 MiB waits in this process.
  for (let i = 0; i < 400; i++) {
    engine.latest.say(piece);
    await sleep(1);
  }
  engine.latest.say('the end');
  await eventually(() => good.seen.text.endsWith('the end'));
  slow.client.resume();
  await eventually(() => slow.seen.code !== 0);
  assert.equal(slow.seen.code, 1013);
  assert.ok(!slow.seen.text.endsWith('the end'));
  good.client.close();
});

test('who answers pings stays, who does not is ended', async () => {
  await app.close();
  await start(1);
  const [good, dead] = [await view(), await view()];
  const open = sockets.connections;
  dead.client.pause(); // reads no ping
  await eventually(() => sockets.connections === open - 1);
  await sleep(1500);
  assert.equal(good.client.readyState, good.client.OPEN);
  dead.client.terminate();
  await app.close();
  await start();
});

test('32 viewers fit, the next is refused, and slots come back', async () => {
  await eventually(() => sockets.connections === 0);
  const views = await Promise.all(Array.from({ length: 32 }, () => view()));
  assert.deepEqual(await refusal({ headers: { 'x-api-key': 'owner' } }), [503, 'overloaded']);
  views[0]?.client.close();
  await eventually(() => sockets.connections === 31);
  (await view()).client.close();
  for (const { client } of views) client.terminate();
  await eventually(() => sockets.connections === 0);
});

test('when the guest stops its viewers are closed with 1000', async () => {
  const { seen } = await view();
  engine.latest.stop();
  await eventually(() => seen.code !== 0);
  assert.equal(seen.code, 1000);
});

test('the log is text, its newest bytes, whole characters, also of a machine that stopped', async () => {
  engine.log = Buffer.from('first ü line\nsecond\n');
  state = 'stopped';
  const url = `http://${base}/api/vms/${VM}/log`;
  const read = async (query: string, as = 'reader') => fetch(url + query, { headers: { 'x-api-key': as } });
  const all = await read('');
  assert.equal(all.headers.get('content-type'), 'text/plain; charset=utf-8');
  assert.equal(await all.text(), 'first ü line\nsecond\n');
  assert.equal(await (await read('?bytes=7')).text(), 'second\n');
  assert.equal(await (await read('?bytes=14')).text(), ' line\nsecond\n');
  assert.equal(await (await read('?bytes=0')).text(), '');
  for (const bytes of ['1048577', '-1', 'x', '1.5'])
    assert.equal((await read(`?bytes=${bytes}`)).status, 400);
  assert.equal((await read('', 'stranger')).status, 404);
  engine.log = Buffer.alloc(2 ** 21, 'z');
  assert.equal((await (await read('')).text()).length, 65_536);
  assert.equal((await (await read('?bytes=1048576')).text()).length, 1_048_576);
});

test('who may no longer is closed with 1008; others stay, and a ticket got before is void', async () => {
  const headers = { 'x-api-key': 'other' };
  const [gone, good] = [await view(), await view({ headers })];
  const { ticket } = await newTicket();
  ended.add('k-1-compute:write');
  await eventually(() => gone.seen.code !== 0);
  assert.equal(gone.seen.code, 1008);
  assert.deepEqual(await refusal({ query: `?ticket=${ticket}` }), [401, 'invalid_ticket']);
  assert.equal(good.seen.code, 0);
  engine.latest.say('for the other');
  await eventually(() => good.seen.text.endsWith('for the other'));
  assert.ok(!gone.seen.text.endsWith('for the other'));
  good.client.close();
});

test('a suspension, which stops the guest too, closes its viewers with 1008', async () => {
  const { seen } = await view();
  ended.add('k-1-compute:write');
  engine.latest.stop();
  await eventually(() => seen.code !== 0);
  assert.equal(seen.code, 1008);
});

test('when Cloudlet stops viewers are closed with 1001 and hold nothing up', async () => {
  const { seen, client } = await view();
  client.pause();
  const other = await view();
  await app.close();
  await eventually(() => other.seen.code === 1001);
  assert.equal(seen.code, 0);
  client.resume();
});
