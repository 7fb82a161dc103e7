/** The limits of every protocol: reserved connections, rate limits, and the limit of unread responses. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { NOBODY } from '../calls/principal.ts';
import { buildEdges } from '../cloud/edges.ts';
import { loadConfig } from '../config/config.ts';
import { FakeClock } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import { Type } from '../platform/json/json-schema.ts';
import { Meters } from '../platform/prometheus.ts';
import { eventually } from '../testing/eventually.ts';
import { authorization, EXAMPLE_KEY, EXAMPLE_MS, EXAMPLE_SECRET, EXAMPLE_TIME } from '../testing/sign-s3.ts';
import type { Channel } from './connections/web-sockets.ts';
import { NO_OTHER_NODE } from './forwarding/forwarding.ts';
import { OwnAddresses } from './origins.ts';
import { defineRoute } from './route.ts';

const MIB = 2 ** 20;
/** More than the buffers of a connection hold. */
const LARGE_BYTES = 24 * MIB;
/** Room for two large responses of an account, but not for three. */
const UNREAD_MB = 60;
const BUCKETS = 1000;
const LIMIT = 20;

/** Credentials are the number of their account; 0 is invalid. */
function accountOf(credential: string | undefined, code: 'invalid_api_key' | 'invalid_database_password') {
  const accountId = Number(credential?.replace(/\D/g, ''));
  if (accountId > 0) return { ...NOBODY, accountId, via: 'key' as const, credentialId: `key-${accountId}` };
  throw new AppError(code, 'This is wrong');
}

const routes = [
  defineRoute({
    method: 'GET',
    path: '/api/large',
    name: 'large',
    tag: 'system',
    summary: 'Something large',
    permission: 'authenticated',
    responses: { 200: Type.String() },
    handler: async () => 'x'.repeat(LARGE_BYTES),
  }),
  defineRoute({
    method: 'GET',
    path: '/healthz',
    name: 'getHealth',
    tag: 'system',
    summary: 'Health',
    permission: 'public',
    usesReserve: true,
    responses: { 200: Type.String() },
    handler: async () => 'ok',
  }),
];

/** Long enough that the complete list is a large response. */
async function* buckets() {
  const region = 'r'.repeat(LARGE_BYTES / BUCKETS);
  for (let i = 0; i < BUCKETS; i++) yield { row: { name: `b${i}`, created_at: EXAMPLE_MS, region } };
}

const database = (password: string) => {
  const { accountId } = accountOf(password, 'invalid_database_password');
  return { databaseId: `db-${accountId}`, accountId };
};

async function open(t: TestContext, settings: Readonly<Record<string, string>> = {}) {
  const clock = new FakeClock(EXAMPLE_MS);
  const machine = createServer((_request, response) => response.end('the machine')).listen(0, '127.0.0.1');
  await once(machine, 'listening');
  const config = loadConfig({ CLOUDLET_APPS_DOMAIN: 'apps.example.org', ...settings });
  const { api, data, guard } = buildEdges(config, {
    clock,
    log: pino({ level: 'silent' }),
    meters: new Meters(),
    accounts: {
      authenticate: ({ apiKey }) => accountOf(apiKey, 'invalid_api_key'),
      isCurrent: () => true,
      holderOf: () => accountOf(undefined, 'invalid_api_key'),
    },
    control: new WeakSet(),
    forwarding: NO_OTHER_NODE,
    tickets: { holderOf: () => NOBODY },
    // No request of these tests has an Idempotency-Key or prefers to be answered early.
    idempotency: undefined as never,
    operations: undefined as never,
    apiRoutes: routes,
    dataRoutes: [],
    sockets: [
      {
        path: '/api/socket',
        name: 'openSocket',
        permission: 'authenticated',
        prepare: async () => ({
          begin: (channel: Channel) => void channel.write(Buffer.alloc(LARGE_BYTES)),
          receive: () => undefined,
          end: () => {},
        }),
      },
    ],
    hrana: {
      find: async (_id, password) => database(password) as never,
      exchange: async () => ({ status: 200, contentType: 'text/plain', body: Buffer.alloc(LARGE_BYTES) }),
      receive: async () => Buffer.alloc(LARGE_BYTES),
      closeSocket: async () => {},
      egress: { count: () => {}, counted: undefined as never },
    },
    pages: { answer: () => false },
    addresses: new OwnAddresses({ apiUrl: '', dataUrl: '' }),
    s3: {
      storage: { buckets: { list: buckets } } as never,
      keys: {
        s3KeyOf: async (id) => ({
          principal: { ...accountOf(id, 'invalid_api_key'), scopes: ['*'] },
          secret: EXAMPLE_SECRET,
        }),
      },
      accounts: undefined as never,
    },
    named: async (name) => {
      if (name !== 'web') return 'unknown';
      return async () => connect((machine.address() as AddressInfo).port, '127.0.0.1');
    },
    connections: 10_000,
  });
  await Promise.all([api, data].map((app) => app.listen({ host: '127.0.0.1', port: 0 })));
  const sockets = new Set<Socket>();
  t.after(async () => {
    for (const socket of sockets) socket.destroy();
    guard.close();
    machine.close();
    machine.closeAllConnections();
    await Promise.all([api.close(), data.close()]);
  });
  const ports = { api: api.server.address() as AddressInfo, data: data.server.address() as AddressInfo };
  const dial = async (origin: 'api' | 'data') => {
    const socket = connect(ports[origin].port, '127.0.0.1');
    sockets.add(socket);
    socket.on('error', () => {});
    await once(socket, 'connect');
    return socket;
  };
  return { clock, dial };
}

type Clouds = Awaited<ReturnType<typeof open>>;

interface DoorCase {
  readonly name: string;
  readonly origin: 'api' | 'data';
  /** A request of an account; 0: with an invalid credential, or for something that does not exist. */
  readonly head: (account: number) => string;
  readonly wrong: number;
  readonly limited: number;
}

const UPGRADE =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';

function s3Head(account: number): string {
  const headers = {
    host: 'localhost',
    'x-amz-content-sha256': 'UNSIGNED-PAYLOAD',
    'x-amz-date': EXAMPLE_TIME,
  };
  const signed = authorization({ method: 'GET', path: '/', headers }, EXAMPLE_SECRET);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET / HTTP/1.1\r\n${lines.join('')}Authorization: ${signed.replace(EXAMPLE_KEY, `A${account}`)}\r\n\r\n`;
}

const SECOND_S3 = 'S3 at the port of the API';
const HTTP_DOORS: readonly DoorCase[] = [
  {
    name: 'the API',
    origin: 'api',
    head: (account) => `GET /api/large HTTP/1.1\r\nHost: localhost\r\nX-API-Key: ${account}\r\n\r\n`,
    wrong: 401,
    limited: 429,
  },
  { name: 'S3', origin: 'data', head: s3Head, wrong: 403, limited: 503 },
  { name: SECOND_S3, origin: 'api', head: s3Head, wrong: 403, limited: 503 },
  {
    name: 'Hrana',
    origin: 'data',
    head: (account) =>
      `POST /db/v2/pipeline HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${account}\r\nContent-Length: 0\r\n\r\n`,
    wrong: 401,
    limited: 429,
  },
];
const MACHINE: DoorCase = {
  name: 'a named machine',
  origin: 'data',
  head: (account) => `GET / HTTP/1.1\r\nHost: ${account === 0 ? 'none' : 'web'}.apps.example.org\r\n\r\n`,
  wrong: 404,
  limited: 429,
};
const WEB_SOCKET: DoorCase = {
  name: 'a WebSocket',
  origin: 'api',
  head: (account) => `GET /api/socket HTTP/1.1\r\nHost: localhost\r\n${UPGRADE}X-API-Key: ${account}\r\n\r\n`,
  wrong: 401,
  limited: 429,
};
const NAMED_SOCKET: DoorCase = {
  ...MACHINE,
  name: 'a WebSocket to a named machine',
  head: (account) => MACHINE.head(account).replace('\r\n\r\n', `\r\n${UPGRADE}\r\n`),
};
const HRANA_SOCKET = {
  name: 'a WebSocket of Hrana',
  origin: 'data',
  head: () => `GET /db/ HTTP/1.1\r\nHost: localhost\r\n${UPGRADE}Sec-WebSocket-Protocol: hrana3\r\n\r\n`,
} as const;

/** Sends, and reads no further than the start of the response. `rest`: the bytes that came with its head. */
async function ask({ dial }: Clouds, { origin, head }: Pick<DoorCase, 'origin' | 'head'>, account: number) {
  const socket = await dial(origin);
  socket.write(head(account));
  const [start] = (await once(socket, 'data')) as [Buffer];
  socket.pause();
  const text = start.toString('latin1');
  const rest = start.subarray(text.indexOf('\r\n\r\n') + 4);
  return { socket, text, rest, status: Number(text.split(' ', 2)[1]) };
}

type Asked = Awaited<ReturnType<typeof ask>>;

/** A masked frame of a client: a text of less than 126 bytes, with a mask of zeros. */
function frame(text: string): Buffer {
  return Buffer.concat([Buffer.from([0x81, 0x80 + text.length, 0, 0, 0, 0]), Buffer.from(text)]);
}

/** The code of the first frame if it closes the connection. */
async function closeCode({ socket, rest }: Pick<Asked, 'socket' | 'rest'>): Promise<number> {
  let bytes = rest;
  socket.on('data', (piece: Buffer) => {
    bytes = Buffer.concat([bytes, piece]);
  });
  socket.resume();
  const begins = (at: number) => bytes.length >= at + 4;
  await eventually(() => begins(0));
  // The answer to a hello comes first.
  while (bytes[0] === 0x81 && bytes.length >= 2 + (bytes[1] ?? 0))
    bytes = bytes.subarray(2 + (bytes[1] ?? 0));
  await eventually(() => begins(0));
  return bytes[0] === 0x88 ? bytes.readUInt16BE(2) : 0;
}

test('a connection of the reserve serves health checks and nothing else, at every door', async (t) => {
  const cloud = await open(t, { CLOUDLET_MAX_CONNECTIONS_PER_ADDRESS: '10' });
  for (let i = 0; i < 10; i++) assert.equal((await ask(cloud, HRANA_SOCKET, 1)).status, 101);
  const health = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n';
  const doors = [...HTTP_DOORS, MACHINE, WEB_SOCKET, NAMED_SOCKET, HRANA_SOCKET];
  for (const { name, origin, head } of doors) {
    const { status, text, socket } = await ask(cloud, { origin, head }, 1);
    assert.equal(status, 503, name);
    assert.match(text, /^connection: close\r$/im, name);
    socket.destroy();
  }
  const { status } = await ask(cloud, { origin: 'api', head: () => health }, 1);
  assert.equal(status, 200);
});

test('what is wrong is limited by address, at every door', async (t) => {
  const settings = { CLOUDLET_RATE_REQUESTS: String(LIMIT), CLOUDLET_RATE_S3: String(LIMIT) };
  const cloud = await open(t, settings);
  for (const door of [...HTTP_DOORS, MACHINE, WEB_SOCKET, NAMED_SOCKET]) {
    const statuses: number[] = [];
    for (let i = 0; i <= LIMIT; i++) {
      const { status, socket } = await ask(cloud, door, 0);
      socket.destroy();
      statuses.push(status);
    }
    const expected = [...Array<number>(LIMIT).fill(door.wrong), door.limited];
    assert.deepEqual(statuses, expected, door.name);
    cloud.clock.advance(10_000);
  }
  const refusals: string[] = [];
  for (let i = 0; i <= LIMIT; i++) {
    const { socket } = await ask(cloud, HRANA_SOCKET, 0);
    socket.write(frame('{"type":"hello","jwt":"0"}'));
    socket.resume();
    const [told] = await once(socket, 'data');
    refusals.push(/"code":"(\w+)"/.exec(String(told))?.[1] ?? '');
    socket.destroy();
  }
  const wrong = Array<string>(LIMIT).fill('INVALID_DATABASE_PASSWORD');
  assert.deepEqual(refusals, [...wrong, 'RATE_LIMITED']);
});

test('responses that an account does not read are bounded, and cost others nothing, at every door', async (t) => {
  const cloud = await open(t, { CLOUDLET_UNREAD_RESPONSES_MB: String(UNREAD_MB) });
  for (const door of HTTP_DOORS.filter(({ name }) => name !== SECOND_S3)) {
    const asked = [];
    for (const account of [1, 1, 1, 2]) asked.push(await ask(cloud, door, account));
    assert.deepEqual(
      asked.map(({ status }) => status),
      [200, 200, 503, 200],
      door.name,
    );
    // Once they are read, or their connections closed, there is room again.
    asked[0]?.socket.resume();
    await eventually(async () => {
      const { socket, status } = await ask(cloud, door, 1);
      socket.destroy();
      return status === 200;
    });
    for (const { socket } of asked) socket.destroy();
    await sleep(100);
  }
});

test('frames that an account does not read are bounded, and cost others nothing, at both doors', async (t) => {
  const cloud = await open(t, { CLOUDLET_UNREAD_RESPONSES_MB: String(UNREAD_MB) });
  const hrana = async (account: number) => {
    const asked = await ask(cloud, HRANA_SOCKET, account);
    asked.socket.write(frame(`{"type":"hello","jwt":"${account}"}`));
    asked.socket.write(frame('{}'));
    return asked;
  };
  for (const begin of [(account: number) => ask(cloud, WEB_SOCKET, account), hrana]) {
    const unread = [await begin(1), await begin(1)];
    await eventually(async () => {
      const third = await begin(1);
      const code = await closeCode(third);
      third.socket.destroy();
      return code === 1013;
    });
    assert.equal(await closeCode(await begin(2)), 0);
    for (const { socket } of unread) socket.destroy();
    await sleep(100);
  }
});
