/**
 * Signing in through a browser on this computer: the console redirects it to a loopback port with a
 * code (RFC 8252), which is useless without the verifier that stays here (RFC 7636).
 */
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Cloud, LoginKey } from '../../sdk/index.ts';
import { hasDesktop, variable } from '../environment.ts';
import { ClientError, EXIT } from '../failures.ts';
import type { Output } from '../output.ts';

/** Maximum wait for the user. */
const WAIT_MS = 10 * 60_000;

export interface AskedLogin {
  readonly url: string;
  /** A call without a key. */
  readonly cloud: Cloud;
  /** Name of the new key. */
  readonly name: string;
  readonly scopes: LoginKey['scopes'];
  readonly days: number;
  readonly output: Output;
}

/** The key granted in the browser. Throws ClientError if refused or undecided. */
export async function loginByBrowser(asked: AskedLogin): Promise<LoginKey> {
  const verifier = randomBytes(32).toString('base64url');
  const state = randomBytes(16).toString('base64url');
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const redirect = `http://127.0.0.1:${port}/callback`;
  const challenge = createHash('sha256').update(verifier).digest('base64url');
  // Browsers do not send the fragment (#) to servers, so no proxy logs it.
  const fields = { redirect, challenge, state, name: asked.name, scopes: asked.scopes.join(' ') };
  const search = new URLSearchParams({ ...fields, days: String(asked.days) });
  const address = `${asked.url}/connect#${search}`;
  asked.output.ask('To sign in, open this address in a browser on this computer:', `  ${address}`);
  asked.output.note('Waiting for the browser. On another computer: cloudlet login --device');
  openBrowser(address);
  try {
    return await new Promise<LoginKey>((resolve, reject) => {
      const late = () =>
        reject(new ClientError('the sign-in was not approved within 10 minutes', EXIT.timeout));
      setTimeout(late, WAIT_MS).unref();
      server.on('request', (request, response) => {
        const code = codeOf(request, { port, state });
        if (code === undefined) return void answer(response, 404);
        const key = fetchKey(asked, { code, verifier, redirect });
        key.then(
          () => answer(response, 303, `${asked.url}/connect#done`),
          () => answer(response, 303, `${asked.url}/connect#failed`),
        );
        // Sent after the browser has received its response, so that it shows the outcome.
        response.once('close', () => key.then(resolve, reject));
      });
    });
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

/** The code in a loopback request, or why there is none; undefined: an unrelated request. */
function codeOf(
  { method, url = '', headers }: IncomingMessage,
  { port, state }: { readonly port: number; readonly state: string },
): string | ClientError | undefined {
  // A page that resolves its own name to this address (DNS rebinding) would send that name.
  if (method !== 'GET' || headers.host !== `127.0.0.1:${port}`) return undefined;
  if (!URL.canParse(url, 'http://127.0.0.1')) return undefined;
  const { pathname, searchParams } = new URL(url, 'http://127.0.0.1');
  if (pathname !== '/callback' || searchParams.get('state') !== state) return undefined;
  if (searchParams.has('error')) return new ClientError('the sign-in was refused', EXIT.forbidden);
  return searchParams.get('code') ?? undefined;
}

async function fetchKey(
  { cloud }: AskedLogin,
  { code, verifier, redirect }: { code: string | ClientError; verifier: string; redirect: string },
): Promise<LoginKey> {
  if (code instanceof ClientError) throw code;
  return cloud.redeemLoginCode({ code, code_verifier: verifier, redirect_uri: redirect });
}

/** A redirect leaves no trace of the code in the history of the browser. */
function answer(response: ServerResponse, status: number, location?: string): void {
  const headers = { connection: 'close', 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' };
  response.writeHead(status, location === undefined ? headers : { ...headers, location }).end();
}

/** If it fails, the user has the printed URL. */
function openBrowser(address: string): void {
  const own = variable('BROWSER');
  if (own === undefined && !hasDesktop()) return;
  const program = own ?? (process.platform === 'darwin' ? 'open' : 'xdg-open');
  spawn(program, [address], { stdio: 'ignore', detached: true })
    .on('error', () => {})
    .unref();
}
