/** Upgrades of connections to other protocols, for servers where several components accept some. */
import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { AppError } from '../../platform/errors.ts';

export interface Upgrades {
  takes(request: IncomingMessage): boolean;
  /** `head`: bytes that the client sent right after its request. */
  upgrade(request: IncomingMessage, connection: { client: Duplex; head: Buffer }): void;
}

/** Refuses an ordinary request to the path of a WebSocket. */
export function upgradeRequired(detail: string, hint: string): AppError {
  return new AppError('upgrade_required', detail, { hint, headers: { upgrade: 'websocket' } });
}

/**
 * Passes each upgrade to the first component that accepts it; others stay ordinary requests. Call
 * before the server listens.
 */
export function serveUpgrades(server: Server, all: readonly Upgrades[]): void {
  const takerOf = (request: IncomingMessage) => all.find((each) => each.takes(request));
  const shouldUpgradeCallback = (request: IncomingMessage) => takerOf(request) !== undefined;
  Object.assign(server, { shouldUpgradeCallback });
  server.on('upgrade', (request: IncomingMessage, client: Duplex, head: Buffer) => {
    const taker = takerOf(request);
    if (taker === undefined) client.destroy();
    else taker.upgrade(request, { client, head });
  });
}
