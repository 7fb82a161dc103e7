/** Consoles and console logs of machines over REST and WebSocket. */
import type { Principal } from '../../calls/principal.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import type { SocketRoute } from '../../http/web-sockets.ts';
import type { Awaitable } from '../../metadata/metadata.ts';
import { formatTime } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { namedObject, Type } from '../../platform/json-schema.ts';
import type { Hypervisor } from '../hypervisor.ts';
import { VmPath } from '../schema.ts';
import type { Consoles } from './console.ts';
import type { ConsoleTickets } from './console-tickets.ts';

/** What consoles ask of a machine's row. */
export interface ConsoleVm {
  readonly vm_id: string;
  readonly state: string;
}

export interface ConsoleRoutesDeps {
  /** The caller's machine. Throws `vm_not_found`, also when it is someone else's. */
  readonly find: (principal: Principal, vmId: string) => Awaitable<ConsoleVm>;
  readonly consoles: Consoles;
  readonly tickets: ConsoleTickets;
  readonly hypervisor: Pick<Hypervisor, 'consoleLog'>;
  /** Where users reach the API, `https://host`. */
  readonly apiUrl: () => string;
}

const LOG_BYTES = 64 * 1024;
const LOG_BYTES_MAX = 2 ** 20;
const CONSOLE = '/api/vms/{vm_id}/console';
/** States in which there may be a console; whether there is, the engine knows. */
const WITH_CONSOLE: ReadonlySet<string> = new Set(['starting', 'running', 'stopping']);

const Ticket = namedObject('ConsoleTicket', {
  ticket: Type.String({ description: 'Valid once, for this machine' }),
  expires_at: Type.String(),
  url: Type.String({ description: 'WebSocket address with the ticket in it' }),
});

export function consoleRoutes(deps: ConsoleRoutesDeps): Route[] {
  return [ticketRoute(deps), logRoute(deps), consoleRoute(deps)];
}

function ticketRoute({ find, tickets, apiUrl }: ConsoleRoutesDeps): Route {
  return defineRoute({
    method: 'POST',
    path: '/api/vms/{vm_id}/console-tickets',
    name: 'createConsoleTicket',
    tag: 'compute',
    summary: 'Get a ticket for the console',
    description: 'For browsers, which cannot send a key with a WebSocket. It is valid once, for 60 s.',
    permission: 'compute:write',
    params: VmPath,
    responses: { 201: Ticket },
    errors: ['vm_not_found'],
    handler: async ({ principal, params }) => {
      const { vm_id } = await find(principal, params.vm_id);
      const { ticket, expiresAt } = tickets.issue(principal, vm_id);
      const url = `${apiUrl().replace(/^http/, 'ws')}${CONSOLE.replace('{vm_id}', vm_id)}?ticket=${ticket}`;
      return { ticket, expires_at: formatTime(expiresAt), url };
    },
  });
}

function logRoute({ find, hypervisor }: ConsoleRoutesDeps): Route {
  const bytes = Type.Integer({
    minimum: 0,
    maximum: LOG_BYTES_MAX,
    default: LOG_BYTES,
    description: 'How much of its end',
  });
  return defineRoute({
    method: 'GET',
    path: '/api/vms/{vm_id}/log',
    name: 'getVmLog',
    tag: 'compute',
    summary: 'Read the latest output of the serial console',
    description: 'Also of earlier runs. Bytes that are not UTF-8 are shown as U+FFFD.',
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

/** Without the rest of a UTF-8 character whose beginning was cut off. */
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
    tag: 'compute',
    summary: 'The serial console, as a WebSocket',
    description:
      'Bytes both ways in binary frames of at most 64 KiB; text frames are taken as UTF-8. The last 64 KiB come first. ' +
      'Browsers send `?ticket=`, others their key. Closed with 1000 when the machine stops, with 1013 when the viewer is too slow.',
    permission: 'compute:write',
    params: VmPath,
    query: Type.Object({ ticket: Type.Optional(Type.String({ description: 'Instead of a key' })) }),
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
      throw new AppError('upgrade_required', 'A console is a WebSocket; this request asks for none', {
        hint: 'Open it with a WebSocket client, or read GET /api/vms/{vm_id}/log',
        headers: { upgrade: 'websocket' },
      });
    },
  });
}

/** The same address as the WebSocket it is. */
export function consoleSocket({ find, consoles, tickets }: Omit<ConsoleRoutesDeps, 'apiUrl'>): SocketRoute {
  return {
    path: CONSOLE,
    name: 'openConsole',
    permission: 'compute:write',
    redeem: (ticket, params) => tickets.redeem(ticket, params.vm_id ?? ''),
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
