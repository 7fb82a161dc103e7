/** Changes of what the caller has, as they happen, over a WebSocket. */
import type { Updates } from '../calls/updates.ts';
import { AppError } from '../platform/errors.ts';
import { Type } from '../platform/json-schema.ts';
import { defineRoute, type Route } from './route.ts';
import type { SocketRoute } from './web-sockets.ts';

const PATH = '/api/updates';
const COMMON = { path: PATH, name: 'watchUpdates', permission: 'authenticated' } as const;
/** Browsers do not see pings, and so not that a connection is dead. */
const HEARTBEAT_MS = 20_000;

/** The address as it is documented, for callers without WebSocket. */
export function updateRoutes(): Route[] {
  return [
    defineRoute({
      ...COMMON,
      method: 'GET',
      tag: 'system',
      summary: 'What changes, as it happens, as a WebSocket',
      description:
        'Messages are JSON. `{"type":"sync"}` comes first, and when too much changed to be named: read again ' +
        'what you show. `{"type":"changed","things":[{"kind":"vm","id":"vm-…"}]}` names what changed, not how: ' +
        'kinds are `vm`, `database`, `balance`, `operation` and, for administrators, `recovery_point`; a key is ' +
        'told only of what it may read. `{"type":"alive"}` comes every 20 seconds. Nothing is kept for those ' +
        'who were away. Closed with 1008 when the key or session ends. Browsers come with their session.',
      responses: { 101: Type.Unknown({ description: 'A WebSocket' }) },
      errors: ['overloaded', 'cross_site_request', 'bad_http', 'upgrade_required'],
      handler: () => {
        throw new AppError('upgrade_required', 'Updates are a WebSocket; this request asks for none', {
          hint: 'Open it with a WebSocket client',
          headers: { upgrade: 'websocket' },
        });
      },
    }),
  ];
}

/** The same address as the WebSocket it is. */
export function updatesSocket(updates: Updates): SocketRoute {
  return {
    ...COMMON,
    redeem: () => {
      throw new AppError('invalid_ticket', 'Updates are watched with a key or a session, not with a ticket');
    },
    prepare: async (principal) => {
      let send: (message: object) => void = () => {};
      const stop = updates.watch(principal, {
        changed: (things) => send({ type: 'changed', things }),
        lost: () => send({ type: 'sync' }),
      });
      const heartbeat = setInterval(() => send({ type: 'alive' }), HEARTBEAT_MS).unref();
      return {
        begin: (channel) => {
          send = (message) => channel.send(JSON.stringify(message));
          send({ type: 'sync' });
        },
        receive: async () => {},
        end: () => {
          clearInterval(heartbeat);
          stop();
        },
      };
    },
  };
}
