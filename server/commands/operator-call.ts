/**
 * Calls the API as the operator of this machine: over the running server's control socket, or over one of
 * its own.
 */
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import type { Config } from '../config/config.ts';
import { controlPath, TOKEN_HEADER, tokenPath } from '../http/control-server.ts';
import { holdsCloud } from '../platform/data-directory.ts';

export interface OperatorCall {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
}

export type CallAsOperator = <T>(call: OperatorCall) => Promise<T>;

/**
 * Runs `work` with a function that calls the API and returns its JSON. If no server runs, the cloud
 * is opened for the duration of the work; throws if there is no cloud. A refusal becomes an Error
 * with the problem's detail.
 */
export async function asOperator<T>(config: Config, work: (call: CallAsOperator) => Promise<T>): Promise<T> {
  if (await serverAnswers(config)) return askServer(config, work);
  const call: CallAsOperator = (input) => callSocket(controlPath(config), input);
  const { withClosedCloud } = await import('./closed-cloud.ts');
  return withClosedCloud(config, () => work(call));
}

/** Same as asOperator, but throws if no server runs. */
export async function askServer<T>(config: Config, work: (call: CallAsOperator) => Promise<T>): Promise<T> {
  assertCloud(config.dataDir);
  const path = controlPath(config);
  if (!(await answers(path))) throw new Error(`No server is running on ${config.dataDir}: start it first`);
  return work((input) => callSocket(path, input));
}

/** Whether a server runs. Throws if there is no cloud. */
export async function serverAnswers(config: Config): Promise<boolean> {
  assertCloud(config.dataDir);
  return answers(controlPath(config));
}

/** Throws if there is no cloud: only `start` creates one. */
export function assertCloud(dataDir: string): void {
  let isThere: boolean;
  try {
    isThere = holdsCloud(dataDir);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Error(
      `No permission to read ${dataDir} (${code}): run this as the user that runs Cloudlet, or as root`,
    );
  }
  if (isThere) return;
  throw new Error(
    `There is no cloud in ${dataDir}: pass its data directory with --data-dir or CLOUDLET_DATA_DIR, ` +
      'or create one with cloudlet start',
  );
}

function answers(socketPath: string): Promise<boolean> {
  return callSocket(socketPath, { method: 'GET', path: '/healthz' }).then(
    () => true,
    () => false,
  );
}

/** Empty if there is none: the server then responds that a key is needed. */
function tokenOf(socketPath: string): string {
  try {
    return readFileSync(tokenPath(socketPath), 'utf8');
  } catch {
    return '';
  }
}

function callSocket<T>(socketPath: string, { method, path, body }: OperatorCall): Promise<T> {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? '' : JSON.stringify(body);
    const about =
      body === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
    const headers = { ...about, [TOKEN_HEADER]: tokenOf(socketPath) };
    const outgoing = request({ socketPath, method, path, headers, agent: false }, (response) => {
      let answer = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        answer += chunk;
      });
      response.on('error', reject);
      response.on('end', () => {
        const json = JSON.parse(answer);
        if ((response.statusCode ?? 500) < 300) resolve(json);
        else reject(new Error(json.detail + (json.hint ? ` (${json.hint})` : '')));
      });
    });
    outgoing.on('error', reject);
    outgoing.end(text);
  });
}
