/** Builds the edges for libSQL drivers. */
import type { FastifyInstance } from 'fastify';
import type { Config } from '../config/config.ts';
import { HranaEdge, type HranaEdgeDeps } from './hrana-edge.ts';
import { HranaSockets } from './hrana-sockets.ts';

type Settings = Pick<Config, 'databaseCalls' | 'databaseCallMb'>;

/** Serves Hrana on a server that does not listen yet. Returns the handler of its WebSocket upgrades. */
export function serveHrana(
  app: FastifyInstance,
  { databaseCalls: maxCalls, databaseCallMb }: Settings,
  deps: Omit<HranaEdgeDeps, 'maxCalls' | 'maxBodyBytes'>,
): HranaSockets {
  const limited = { ...deps, maxCalls, maxBodyBytes: databaseCallMb * 2 ** 20 };
  new HranaEdge(limited).serve(app);
  const sockets = new HranaSockets(limited);
  app.addHook('preClose', async () => sockets.close());
  return sockets;
}
