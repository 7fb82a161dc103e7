/** Builds the edges for libSQL drivers. */
import type { FastifyInstance } from 'fastify';
import type { Config } from '../config/config.ts';
import { HranaEdge, type HranaEdgeDeps } from './hrana-edge.ts';
import { HranaSockets } from './hrana-sockets.ts';

type Settings = Pick<Config, 'databaseCalls' | 'databaseCallMb' | 'maxConnections'>;

/** Serves Hrana on a server that does not listen yet. Returns the handler of its WebSocket upgrades. */
export function serveHrana(
  app: FastifyInstance,
  { databaseCalls: maxCalls, databaseCallMb, maxConnections }: Settings,
  deps: Omit<HranaEdgeDeps, 'maxCalls' | 'maxBodyBytes' | 'maxSockets'>,
): HranaSockets {
  const maxSockets = Math.ceil(maxConnections / 4);
  const limited = { ...deps, maxCalls, maxSockets, maxBodyBytes: databaseCallMb * 2 ** 20 };
  new HranaEdge(limited).serve(app);
  const sockets = new HranaSockets(limited);
  app.addHook('preClose', async () => sockets.close());
  return sockets;
}
