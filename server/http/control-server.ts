/**
 * The operator's way in on the machine itself: the API on a unix socket in the data directory. Whoever can
 * read the token beside it (their directory is 0700) already owns every byte, so no key is asked for. The
 * token is what counts, not the connection: a program of the operator's can be led to connect anywhere.
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

/** Where the running server listens for the operator. */
export function controlPath({ dataDir }: Config): string {
  return join(dataDir, 'control.sock');
}

/** Where the token is of the server that listens on that socket. */
export function tokenPath(socketPath: string): string {
  return join(dirname(socketPath), 'control.token');
}

/**
 * Listens on `path`, replacing what an earlier process left there: the data directory's lock says it is
 * gone. The token is a new one each time.
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
