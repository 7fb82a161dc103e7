/**
 * The operator's way in on the machine itself: the API on a unix socket in the data directory. Whoever
 * can open it (its directory is 0700) already owns every byte, so no key is asked for.
 */
import { chmodSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { ControlSockets } from './credentials.ts';

/**
 * Listens on `path`, replacing what an earlier process left there: the data directory's lock says it is
 * gone.
 */
export async function listenOnControlSocket(
  app: FastifyInstance,
  path: string,
  control: ControlSockets,
): Promise<Server> {
  const server = createServer((request, response) => app.routing(request, response));
  server.on('connection', (socket) => control.add(socket));
  rmSync(path, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
  chmodSync(path, 0o600);
  return server;
}
