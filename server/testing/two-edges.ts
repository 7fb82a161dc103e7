import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { pino } from 'pino';
import { NOBODY, OPERATOR, type Principal } from '../calls/principal.ts';
import { buildEdges } from '../cloud/edges.ts';
import { loadConfig } from '../config/config.ts';
import { NodeLinks } from '../drivers/node-proxy/node-links.ts';
import { Forward } from '../http/forwarding/forward.ts';
import { SignedCalls } from '../http/forwarding/signed-calls.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { FakeClock } from '../platform/clock.ts';
import { Type } from '../platform/json/json-schema.ts';
import type { NodeView } from '../platform/membership.ts';
import { Meters } from '../platform/prometheus.ts';

const SECRET = Buffer.alloc(32, 7);
const BOB: Principal = { ...OPERATOR, via: 'key', accountId: 8, credentialId: 'key-8', isAdmin: false };
const ALICE: Principal = { ...OPERATOR, via: 'key', accountId: 7, credentialId: 'key-7', isAdmin: false };

interface Seen {
  readonly address: string;
  readonly principal: Principal;
  readonly requestId: string;
  readonly body: unknown;
  readonly headers: Readonly<Record<string, unknown>>;
}

type Handler = Route['handler'];

function routesOf({ answer, held1, isHost }: { answer: Handler; held1: Handler; isHost: boolean }) {
  const answered = {
    responses: { 200: Type.Unknown() },
    permission: 'authenticated',
    tag: 'compute',
  } as const;
  return [
    { method: 'POST', path: '/api/act', name: 'act', body: Type.Unknown(), handler: answer, livesOn: 'host' },
    { method: 'GET', path: '/api/rows', name: 'rows', handler: answer, livesOn: 'host-or-any' },
    { method: 'GET', path: '/api/here', name: 'here', handler: answer },
    { method: 'POST', path: '/api/hold', name: 'hold', handler: held1, livesOn: 'host' },
    { method: 'GET', path: '/api/hold', name: 'holdRead', handler: held1, livesOn: 'host' },
    {
      method: 'GET',
      path: '/api/slow',
      name: 'slow',
      handler: isHost ? held1 : answer,
      livesOn: 'host-or-any',
    },
  ].map((route) => defineRoute({ ...answered, summary: '', isRepeatable: true, ...route } as never));
}

/** WebSockets, and the drivers of databases. */
function socketsOf(name: string): Pick<Parameters<typeof buildEdges>[1], 'sockets' | 'hrana'> {
  return {
    sockets: [
      {
        path: '/api/socket',
        name: 'openSocket',
        permission: 'authenticated',
        livesOn: 'host',
        redeem: async (ticket) => (ticket === 'of-alice' ? ALICE : NOBODY),
        prepare: async ({ accountId }) => ({
          begin: (channel) => channel.send(`${name}:${accountId}`),
          receive: () => undefined,
          end: () => {},
        }),
      },
    ],
    hrana: {
      find: async () => ({ databaseId: 'db-1', accountId: 7 }) as never,
      exchange: async (_, { path }) => ({
        status: 200,
        contentType: 'text/plain',
        body: Buffer.from(`${name}:${path}`),
      }),
      receive: async () => null,
      closeSocket: async () => {},
      egress: { count: () => {}, counted: undefined as never },
    },
  };
}

type Edges = ReturnType<typeof buildEdges>;

async function closeEdges(
  api: Edges['api'],
  data: Edges['data'],
  { guard, links }: { guard: Edges['guard']; links: NodeLinks },
): Promise<void> {
  guard.close();
  links.close();
  api.server.closeAllConnections();
  data.server.closeAllConnections();
  await api.close();
  await data.close();
}

/** Connections whose probes are not answered while the other node stands still. */
function probed(links: NodeLinks, isStill: () => boolean): Pick<NodeLinks, 'request'> {
  const nowhere = 'http://127.0.0.1:1';
  return {
    request: (url, head) => links.request(isStill() && head.path === '/healthz' ? nowhere : url, head),
  };
}

/** A node whose calls return where they were answered, and by which role. */
async function openNode(
  t: TestContext,
  {
    name,
    others,
    isStill = () => false,
  }: { name: string; others: () => readonly NodeView[]; isStill?: () => boolean },
) {
  const isHost = name === 'host';
  const seen: Seen[] = [];
  const held: AbortSignal[] = [];
  const logged: string[] = [];
  const note = (line: string) => {
    const { msg, request_id: id } = JSON.parse(line);
    if (msg === 'request') logged.push(id);
  };
  const answer = async ({ request, principal, body }: Parameters<Handler>[0]) => {
    const { address, id, raw } = request;
    seen.push({ address, principal, requestId: id, body, headers: raw.headers });
    return { by: name };
  };
  const held1 = async ({ reply }: Parameters<Handler>[0]) => {
    const left = new AbortController();
    reply.raw.once('close', () => left.abort());
    held.push(left.signal);
    await new Promise(() => {});
  };
  const apiRoutes = routesOf({ answer, held1, isHost });
  const clock = new FakeClock(1e12);
  const control = new WeakSet<object>();
  const gone = new Set<string>();
  const runId = `${name}-1`;
  const membership = {
    runId,
    isHost,
    isGone: (id: string) => gone.has(id) || !/^(host|front)-1$/.test(id),
    nodes: others,
  };
  const calls = new SignedCalls({ secret: SECRET, membership, clock });
  const links = new NodeLinks();
  let forward: Forward | undefined;
  const config = { CLOUDLET_RATE_REQUESTS: isHost ? '2' : '10', CLOUDLET_MAX_CONNECTIONS: '16' };
  const { api, data, guard } = buildEdges(loadConfig(config), {
    clock,
    log: pino({ level: 'debug' }, { write: note }),
    meters: new Meters(),
    accounts: {
      authenticate: ({ apiKey }) => (apiKey === 'alice' ? ALICE : apiKey === 'bob' ? BOB : NOBODY),
      isCurrent: () => true,
      holderOf: () => ALICE,
    },
    control,
    tickets: { holderOf: () => NOBODY },
    idempotency: undefined as never,
    operations: undefined as never,
    apiRoutes,
    dataRoutes: [],
    ...socketsOf(name),
    pages: { answer: () => false },
    addresses: { answer: (_: unknown, __: unknown, work: () => unknown) => work() } as never,
    s3: undefined as never,
    named: async () => 'unknown',
    connections: 1000,
    forwarding: {
      ports: {
        has: (port) => port === 25_432,
        take: (port, client, address) => void client.end(`${port} from ${address}\n`) === undefined,
      },
      forwarded: calls,
      begin: (deps) => {
        const newId = () => 'req-1';
        if (!isHost)
          forward = new Forward({ ...deps, membership, calls, links: probed(links, isStill), newId });
        return forward;
      },
      close: () => links.close(),
    },
  });
  await api.listen({ port: 0, host: '127.0.0.1' });
  await data.listen({ port: 0, host: '127.0.0.1' });
  t.after(() => closeEdges(api, data, { guard, links }));
  const urlOf = ({ server }: typeof api) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const urls = { api: urlOf(api), data: urlOf(data) };
  const connect = (port: number, address: string) => (forward as Forward).connect(port, address);
  return { seen, held, logged, gone, calls, control, ...urls, server: api.server, connect };
}

export async function openCluster(t: TestContext) {
  const host = await openNode(t, { name: 'host', others: () => [] });
  const view = { isHost: true, state: 'up', runId: 'host-1', url: host.api, beatAgeMs: 0 } as NodeView;
  let nodes: readonly NodeView[] = [view];
  let isStill = false;
  const front = await openNode(t, { name: 'front', others: () => nodes, isStill: () => isStill });
  /** A host without heartbeats counts as standing still, unless it `responds`. */
  const lose = (to: readonly NodeView[], { responds = false } = {}) => {
    [nodes, isStill] = [to, !responds];
  };
  return { host, front, view, lose, gone: front.gone };
}

export const asAlice = { 'x-api-key': 'alice' };
export const call = (url: string, init: RequestInit = {}) =>
  fetch(url, { ...init, headers: { ...asAlice, ...(init.headers as Record<string, string>) } });
export const act = (url: string, headers: Record<string, string> = {}) =>
  call(`${url}/api/act`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: '{"a":1}',
  });
