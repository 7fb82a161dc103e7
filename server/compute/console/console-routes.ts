/** Consoles and console logs of machines over REST and WebSocket. */
import type { Principal } from '../../calls/principal.ts';
import type { Tickets } from '../../calls/tickets.ts';
import { upgradeRequired } from '../../http/connections/upgrades.ts';
import type { SocketRoute } from '../../http/connections/web-sockets.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import type { Awaitable } from '../../metadata/metadata.ts';
import { formatTime } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { namedObject, Type } from '../../platform/json/json-schema.ts';
import type { Hypervisor } from '../hypervisor.ts';
import { VmPath } from '../schema.ts';
import type { Consoles } from './console.ts';

/** The columns of a machine for consoles. */
export interface ConsoleVm {
  readonly vm_id: string;
  readonly state: string;
}

export interface ConsoleRoutesDeps {
  /** The caller's machine. Throws `vm_not_found`, also when it is someone else's. */
  readonly find: (principal: Principal, vmId: string) => Awaitable<ConsoleVm>;
  readonly consoles: Consoles;
  readonly tickets: Tickets;
  readonly hypervisor: Pick<Hypervisor, 'consoleLog'>;
  /** URL of the API for users, `https://host`. */
  readonly apiUrl: () => string;
}

const LOG_BYTES = 64 * 1024;
const LOG_BYTES_MAX = 2 ** 20;
const CONSOLE = '/api/vms/{vm_id}/console';
/** States that allow a console; the engine decides whether there is one. */
const WITH_CONSOLE: ReadonlySet<string> = new Set(['starting', 'running', 'stopping']);

const Ticket = namedObject('ConsoleTicket', {
  ticket: Type.String({ description: 'Single-use, valid for this virtual machine' }),
  expires_at: Type.String(),
  url: Type.String({ description: 'WebSocket URL that includes the ticket' }),
});

export function consoleRoutes(deps: ConsoleRoutesDeps): Route[] {
  return [ticketRoute(deps), logRoute(deps), consoleRoute(deps)];
}

function ticketRoute({ find, tickets, apiUrl }: ConsoleRoutesDeps): Route {
  return defineRoute({
    method: 'POST',
    path: '/api/vms/{vm_id}/console-tickets',
    name: 'createConsoleTicket',
    audit: 'none',
    livesOn: 'host',
    tag: 'compute',
    summary: 'Get a ticket for the console',
    description:
      'For browsers, which cannot send an API key with a WebSocket. A ticket is single-use and expires after 60 s.',
    permission: 'compute:write',
    params: VmPath,
    responses: { 201: Ticket },
    errors: ['vm_not_found'],
    handler: async ({ principal, params }) => {
      const { vm_id } = await find(principal, params.vm_id);
      const path = pathOf(vm_id);
      const { ticket, expiresAt } = tickets.issue(principal, path);
      const url = `${apiUrl().replace(/^http/, 'ws')}${path}?ticket=${ticket}`;
      return { ticket, expires_at: formatTime(expiresAt), url };
    },
  });
}

function pathOf(vmId: string): string {
  return CONSOLE.replace('{vm_id}', vmId);
}

function logRoute({ find, hypervisor }: ConsoleRoutesDeps): Route {
  const bytes = Type.Integer({
    minimum: 0,
    maximum: LOG_BYTES_MAX,
    default: LOG_BYTES,
    description: 'Number of bytes to return from the end of the log',
  });
  return defineRoute({
    method: 'GET',
    path: '/api/vms/{vm_id}/log',
    name: 'getVmLog',
    livesOn: 'host',
    tag: 'compute',
    summary: 'Read the latest output of the serial console',
    description: 'Includes output of earlier runs. Invalid UTF-8 is replaced by U+FFFD.',
    permission: 'compute:read',
    params: VmPath,
    query: Type.Object({ bytes: Type.Optional(bytes) }),
    responses: { 200: Type.String() },
    produces: 'text',
    errors: ['vm_not_found', 'engine_unavailable'],
    handler: async ({ principal, params, query }) => {
      const { vm_id } = await find(principal, params.vm_id);
      const log = await hypervisor.consoleLog(vm_id, query.bytes ?? LOG_BYTES);
      return Buffer.from(afterCutCharacter(log)).toString('utf8');
    },
  });
}

/** Drops the rest of a UTF-8 character whose first bytes were cut off. */
function afterCutCharacter(log: Uint8Array): Uint8Array {
  let start = 0;
  while (start < 3 && ((log[start] ?? 0) & 0xc0) === 0x80) start++;
  return log.subarray(start);
}

function consoleRoute({ find }: ConsoleRoutesDeps): Route {
  return defineRoute({
    method: 'GET',
    path: CONSOLE,
    name: 'openConsole',
    livesOn: 'host',
    tag: 'compute',
    summary: 'Open the serial console as a WebSocket',
    description:
      'Binary frames of at most 64 KiB carry the bytes in both directions; text frames are read as UTF-8. The last 64 KiB are replayed first. ' +
      'Browsers send `?ticket=`, other clients their API key. Close code 1000: the machine stopped; 1012: the node with the machines does not answer, connect again; 1013: the client reads too slowly.',
    permission: 'compute:write',
    params: VmPath,
    query: Type.Object({
      ticket: Type.Optional(Type.String({ description: 'Console ticket, instead of an API key' })),
    }),
    responses: { 101: Type.Unknown({ description: 'A WebSocket' }) },
    errors: [
      'vm_not_found',
      'vm_not_running',
      'engine_unavailable',
      'overloaded',
      'invalid_ticket',
      'cross_site_request',
      'bad_http',
      'upgrade_required',
    ],
    handler: async ({ principal, params }) => {
      await find(principal, params.vm_id);
      throw upgradeRequired(
        'A console requires a WebSocket upgrade request',
        'Open it with a WebSocket client, or read GET /api/vms/{vm_id}/log',
      );
    },
  });
}

/** The console's path as a WebSocket. */
export function consoleSocket({ find, consoles, tickets }: Omit<ConsoleRoutesDeps, 'apiUrl'>): SocketRoute {
  return {
    path: CONSOLE,
    name: 'openConsole',
    opens: true,
    permission: 'compute:write',
    livesOn: 'host',
    redeem: (ticket, params) => tickets.redeem(ticket, pathOf(params.vm_id ?? '')),
    async prepare(principal, params) {
      const { vm_id, state } = await find(principal, params.vm_id ?? '');
      if (!WITH_CONSOLE.has(state)) {
        throw new AppError(
          'vm_not_running',
          `A virtual machine has a console only while it runs; it is ${state}`,
        );
      }
      const seat = await consoles.join(vm_id);
      return {
        begin: (channel) =>
          seat.watch({
            send: (bytes) => channel.send(bytes),
            end: () => channel.close(1000, 'The virtual machine stopped'),
          }),
        receive: (bytes) => seat.write(bytes),
        end: () => seat.leave(),
      };
    },
  };
}
