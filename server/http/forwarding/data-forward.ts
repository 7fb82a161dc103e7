/**
 * Forwards requests for databases and machines on the data origin to the host node, from a node
 * without them.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AppError } from '../../platform/errors.ts';
import type { Upgrades } from '../connections/upgrades.ts';
import type { Beside } from '../edge.ts';
import type { Door, Exchange } from '../exchange.ts';
import type { NamedMachines } from '../named-machines.ts';
import { PROBLEM_TYPE, problemHeaders, toAppError, toProblem } from '../response.ts';
import { type Forward, hostUnreachable, type Upgraded } from './forward.ts';
import { type PassedTo, passedPorts } from './passed-ports.ts';

export interface DataForwardDeps {
  readonly forward: Forward;
  readonly doors: { readonly data: Door; readonly named: Door };
  readonly named: Pick<NamedMachines, 'takes'>;
}

const ROUTE = 'forwarded';

export class DataForward implements Beside, Upgrades {
  readonly #deps: DataForwardDeps;

  constructor(deps: DataForwardDeps) {
    this.#deps = deps;
  }

  takes(request: IncomingMessage): boolean {
    return this.#deps.named.takes(request) || request.url?.startsWith('/db/') === true;
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    const { forward } = this.#deps;
    const door = this.#doorOf(request);
    const exchange = door.open(request, response, ROUTE);
    const pass = async () => {
      door.admit(exchange);
      if (request.headers.expect !== undefined) response.writeContinue();
      if (!(await forward.pass({ exchange, origin: 'data' }, response))) throw hostUnreachable();
    };
    pass().catch((thrown) => refuse(door, { exchange, response }, toAppError(thrown)));
  }

  upgrade(request: IncomingMessage, upgraded: Upgraded): void {
    const { forward } = this.#deps;
    const door = this.#doorOf(request);
    const { client } = upgraded;
    client.on('error', () => {}); // 'close' reports the reason
    const exchange = door.open(request, null, ROUTE);
    const pass = async () => {
      door.admit(exchange);
      const onSwitch = () => door.record(exchange, 101);
      await forward.upgrade({ exchange, origin: 'data' }, upgraded, onSwitch);
    };
    pass().catch((thrown) => door.refuseUpgrade(exchange, client, toAppError(thrown)));
  }

  #doorOf(request: IncomingMessage): Door {
    const { doors, named } = this.#deps;
    return named.takes(request) ? doors.named : doors.data;
  }
}

function refuse(
  door: Door,
  { exchange, response }: { readonly exchange: Exchange; readonly response: ServerResponse },
  error: AppError,
): void {
  const send = () => {
    const problem = toProblem(error, exchange.id);
    const body = `${JSON.stringify(problem)}\n`;
    response.writeHead(problem.status, {
      ...exchange.responseHeaders,
      ...problemHeaders(error),
      'content-type': PROBLEM_TYPE,
      'content-length': Buffer.byteLength(body),
      'access-control-allow-origin': '*',
    });
    response.end(body);
    exchange.raw.resume();
  };
  door.refuse(exchange, response, { error, send });
}

/**
 * Passes connections that other nodes forward to the API port on to the host's data origin
 * (`server`) and to `ports`. Must come before the API itself. `door` null: there are no other
 * nodes.
 */
export function forwardedData(door: Door | null, server: () => Server, ports: PassedTo) {
  if (door === null) return { beside: [], upgrades: [] };
  const isForwarded = (request: IncomingMessage) => door.forwarded(request)?.origin === 'data';
  const isSwitched = (request: IncomingMessage) => {
    const { shouldUpgradeCallback: asks } = server() as Server & UpgradeChoice;
    return isForwarded(request) && asks(request);
  };
  const beside: Beside = {
    takes: isForwarded,
    handle: (request, response) => void server().emit('request', request, response),
  };
  const upgrades: Upgrades = {
    takes: isSwitched,
    upgrade: (request, { client, head }) => void server().emit('upgrade', request, client, head),
  };
  return { beside: [beside], upgrades: [upgrades, ...passedPorts(door, ports)] };
}

/** A property of Node's server; see serveUpgrades. */
interface UpgradeChoice {
  shouldUpgradeCallback(request: IncomingMessage): boolean;
}
