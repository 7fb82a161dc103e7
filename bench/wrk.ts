/**
 * wrk, the load generator for both yardstick and Cloudlet: it needs far less processor time than one in Node.
 */
import { fileURLToPath } from 'node:url';
import { runProgram } from './child.ts';

const SCRIPT = fileURLToPath(new URL('./wrk.lua', import.meta.url));

export interface Load {
  readonly url: string;
  readonly connections: number;
  readonly seconds: number;
  readonly key?: string;
  /** Sends multipart uploads of this many bytes instead of GET. */
  readonly upload?: { readonly prefix: string; readonly bytes: number };
  /** Sends the requests in this file in turn, one per line: method, target and headers, separated by tabs. */
  readonly prepared?: { readonly path: string; readonly bodyBytes: number };
  /** Sends this JSON, with a bearer token, instead of GET. */
  readonly post?: { readonly token: string; readonly json: unknown };
}

interface LoadResult {
  readonly requestsPerSecond: number;
  readonly bytesPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

interface Printed {
  readonly requests: number;
  readonly bytes: number;
  readonly microseconds: number;
  readonly refused: number;
  readonly broken: number;
  readonly p50: number;
  readonly p99: number;
}

/** Arguments of wrk.lua. */
function scriptOf({ upload, prepared, post }: Load): string[] {
  if (upload !== undefined) return ['--', upload.prefix, String(upload.bytes)];
  if (prepared !== undefined) return ['--', 'prepared', prepared.path, String(prepared.bodyBytes)];
  return post === undefined ? [] : ['--', 'post', post.token, JSON.stringify(post.json)];
}

/** Puts load on a server. Rejects if any answer was not a 2xx: a fast refusal is not a result. */
export async function runWrk(load: Load): Promise<LoadResult> {
  const { url, connections, seconds, key } = load;
  const header = key === undefined ? [] : ['-H', `X-API-Key: ${key}`];
  const options = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '30s', ...header, '-s', SCRIPT];
  const script = scriptOf(load);
  const output = await runProgram('wrk', [...options, url, ...script]);
  const line = output.split('\n').findLast((text) => text.startsWith('{'));
  const result = JSON.parse(line ?? '{}') as Printed;
  if (!(result.bytes > 0) || result.refused > 0 || result.broken > 0) {
    throw new Error(`the load on ${url} failed: ${output}`);
  }
  const duration = result.microseconds / 1e6;
  return {
    requestsPerSecond: result.requests / duration,
    bytesPerSecond: result.bytes / duration,
    p50Ms: result.p50 / 1000,
    p99Ms: result.p99 / 1000,
  };
}
