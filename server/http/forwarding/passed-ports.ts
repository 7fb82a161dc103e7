/**
 * TCP connections to ports of the host node, such as those of databases, that arrive at another
 * node. Each is forwarded as an HTTP request with an upgrade, and signed, so that the host knows
 * the client's address.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Upgrades } from '../connections/upgrades.ts';
import type { Door } from '../exchange.ts';
import { toAppError } from '../response.ts';
import { hostUnreachable, PORT_PATH, PORT_PROTOCOL } from './forward.ts';

/** Targets of forwarded connections. */
export interface PassedTo {
  has(port: number): boolean;
  take(port: number, client: Socket, address: string): boolean;
}

const ROUTE = 'passedPort';

/** Accepts forwarded connections at the host, on the API port. */
export function passedPorts(door: Door, ports: PassedTo): Upgrades[] {
  const upgrade: Upgrades['upgrade'] = (request, { client, head }) => {
    client.on('error', () => {}); // 'close' reports the reason
    const exchange = door.open(request, null, ROUTE);
    try {
      door.admit(exchange);
      const port = portOf(request);
      if (!ports.has(port)) throw hostUnreachable();
      client.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: ${PORT_PROTOCOL}\r\nConnection: Upgrade\r\n\r\n`,
      );
      door.record(exchange, 101);
      if (head.length > 0) client.unshift(head);
      (client as Socket).setNoDelay(true);
      ports.take(port, client as Socket, exchange.address);
    } catch (thrown) {
      door.refuseUpgrade(exchange, client, toAppError(thrown));
    }
  };
  return [{ takes: (request) => door.forwarded(request)?.origin === 'port', upgrade }];
}

function portOf({ url = '' }: IncomingMessage): number {
  return url.startsWith(PORT_PATH) ? Number(url.slice(PORT_PATH.length)) : Number.NaN;
}
