/**
 * The operator's access on the host: the API on a unix socket in the data directory. A process that
 * can read the token beside it (their directory is 0700) already has access to every byte, so no
 * key is required. The token is required because a program of the operator could be tricked into
 * connecting to the socket.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { dirname, join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import type { Config } from '../config/config.ts';
import { randomSecret } from '../platform/ids.ts';
import type { ControlSockets } from './caller.ts';

/** The header that carries the token. */
export const TOKEN_HEADER = 'x-cloudlet-control';

/** Path of the control socket. */
export function controlPath({ dataDir }: Config): string {
  return join(dataDir, 'control.sock');
}

/** Path of the token file for that socket. */
export function tokenPath(socketPath: string): string {
  return join(dirname(socketPath), 'control.token');
}

/**
 * Listens on `path`, replacing the socket of an earlier process: the data directory's lock guarantees that it
 * has ended. The token is new each time.
 */
export async function listenOnControlSocket(
  app: FastifyInstance,
  path: string,
  control: ControlSockets,
): Promise<Server> {
  const token = randomSecret(32).toString('base64url');
  const server = createServer((request, response) => {
    if (isSame(request.headers[TOKEN_HEADER], token)) control.add(request.socket);
    app.routing(request, response);
  });
  for (const left of [path, tokenPath(path)]) rmSync(left, { force: true });
  writeFileSync(tokenPath(path), token, { flag: 'wx', mode: 0o600 });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
  chmodSync(path, 0o600);
  return server;
}

function isSame(given: string | string[] | undefined, token: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return typeof given === 'string' && timingSafeEqual(digest(given), digest(token));
}
