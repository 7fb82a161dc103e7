/** Tunnels to TCP ports of machines. */
import { credentialOf, type Principal } from '../calls/principal.ts';
import { upgradeRequired } from '../http/connections/upgrades.ts';
import type { SocketRoute } from '../http/connections/web-sockets.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { type Changes, WriteBehind } from '../metadata/change.ts';
import type { Awaitable } from '../metadata/metadata.ts';
import type { Clock } from '../platform/clock.ts';
import { AppError, invalidField } from '../platform/errors.ts';
import { Type } from '../platform/json/json-schema.ts';
import { type Announce, eventOf } from '../resources/row-change.ts';
import type { Tunnels, TunnelTarget } from '../resources/tunnels.ts';
import type { Exposures } from './machines/exposures.ts';
import type { VmEventType } from './machines/lifecycle.ts';
import type { Machines } from './machines/machines.ts';
import type { VmBilling } from './machines/vm-billing.ts';
import type { VmRow, VmStore } from './machines/vm-store.ts';
import { VmPath } from './schema.ts';

export interface VmTunnelsDeps {
  readonly find: Machines['findFor'];
  readonly store: Pick<VmStore, 'find'>;
  readonly exposures: Pick<Exposures, 'dial'>;
  readonly changes: Changes;
  readonly announce: Announce<VmEventType>;
  readonly clock: Clock;
  /** Bytes that machines sent through tunnels. */
  readonly sent: Pick<WriteBehind<string, number>, 'note'>;
  readonly tunnels: Tunnels;
}

/** Bytes that machines send through tunnels: counted in memory, written at intervals. */
export function vmEgress({
  changes,
  billing,
}: Pick<VmTunnelsDeps, 'changes'> & { readonly billing: Pick<VmBilling, 'sent'> }) {
  return new WriteBehind<string, number>({
    changes,
    statementOf: (vmId, bytes) => billing.sent(vmId, bytes),
    join: (earlier, later) => earlier + later,
  });
}

const PATH = '/api/vms/{vm_id}/tunnel';
const MAX_PORT = 65_535;
const SSH = 22;

/** Only needs the machine's state. */
export interface VmTunnelRouteDeps {
  readonly find: (principal: Principal, vmId: string) => Awaitable<{ readonly state: string }>;
}

export function vmTunnelRoute({ find }: VmTunnelRouteDeps): Route {
  const port = Type.Integer({
    minimum: 1,
    maximum: MAX_PORT,
    default: SSH,
    description: 'TCP port of the machine',
  });
  return defineRoute({
    method: 'GET',
    path: PATH,
    name: 'openVmTunnel',
    livesOn: 'host',
    tag: 'compute',
    summary: 'Open a tunnel to a TCP port of a machine as a WebSocket',
    description:
      "Binary frames of at most 64 KiB carry the bytes of one connection to the machine's own port, whether `ports` " +
      'lists it or not. An empty text frame ends the direction of its sender; the other one stays open. Close code ' +
      '1000: both sides ended; 1008: the key ended; 1012: the node with the machines does not answer; 4001: connection lost; 4002: the machine stopped; 4003: ' +
      'idle; 4004: another account needed the slot. A client that pauses reading must send a ping every 25 seconds. The call waits for SSH on port 22 ' +
      'for up to 30 seconds. `cloudlet vm forward` implements this protocol.',
    permission: 'compute:connect',
    params: VmPath,
    query: Type.Object({ port: Type.Optional(port) }),
    responses: { 101: Type.Unknown({ description: 'A WebSocket' }) },
    errors: [
      ...(['vm_not_found', 'vm_not_running', 'port_closed', 'engine_unavailable', 'overloaded'] as const),
      ...(['insufficient_capacity', 'invalid_ticket', 'cross_site_request', 'bad_http'] as const),
      'upgrade_required',
    ],
    handler: async ({ principal, params }) => {
      assertRunning(await find(principal, params.vm_id));
      throw upgradeRequired(
        'A tunnel requires a WebSocket upgrade request',
        'Use cloudlet vm forward, or a WebSocket client',
      );
    },
  });
}

/** The tunnel's path as a WebSocket. */
export function vmTunnelSocket(deps: VmTunnelsDeps): SocketRoute {
  return {
    path: PATH,
    name: 'openVmTunnel',
    opens: true,
    permission: 'compute:connect',
    livesOn: 'host',
    mayHoldUp: true,
    prepare: async (principal, params, query) => {
      const row = await deps.find(principal, params.vm_id ?? '');
      const port = portIn(query);
      assertRunning(row);
      return deps.tunnels.open(targetOf(deps, row, port), { port, credential_id: credentialOf(principal) });
    },
  };
}

/** Digits only: `0x16`, `22.0` and `127.0.0.1:22` are not ports. */
function portIn(query: URLSearchParams): number {
  const text = query.get('port') ?? String(SSH);
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port >= 1 && port <= MAX_PORT && query.getAll('port').length <= 1) return port;
  throw invalidField('port', `must be one TCP port of the machine, 1 to ${MAX_PORT}`);
}

function assertRunning({ state }: { readonly state: string }): void {
  if (state === 'running') return;
  throw new AppError('vm_not_running', `A tunnel needs a virtual machine that is running; it is ${state}`, {
    hint: 'Start it with POST /api/vms/{vm_id}/start',
    extra: { state },
  });
}

function targetOf(deps: VmTunnelsDeps, row: VmRow, port: number): TunnelTarget {
  const { store, exposures, changes, announce, clock, sent } = deps;
  const { vm_id: id, account_id: accountId, started_at: startedAt } = row;
  return {
    id,
    accountId,
    dial: async () => {
      const socket = await exposures.dial(row, port);
      if (socket !== null) return socket;
      throw new AppError('port_closed', `No program answers on port ${port} of ${row.name}`, {
        hint: 'Check in the console of the machine that a program listens on the port',
      });
    },
    isOpen: async () => {
      const now = await store.find(id);
      return now?.state === 'running' && now.started_at === startedAt;
    },
    sent: (bytes) => sent.note(id, bytes),
    announce: async (what, facts) => {
      const event = eventOf(`vm.${what}`, row, { at: clock.now(), vm_id: id, ...facts });
      await changes.store(announce(event));
    },
  };
}
