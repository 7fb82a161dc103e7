/** `api`: any operation of the API, by its path or by its name. */
import { OPERATIONS, type OperationName } from '../../sdk/index.ts';
import { noAnswer, readProblem } from '../../sdk/problem.ts';
import type { Command, Invocation } from '../command.ts';
import { isTerminal } from '../environment.ts';
import { UsageError } from '../failures.ts';
import { cleaned } from '../output.ts';
import { givenText, readTextFile } from '../text-file.ts';

const BODY_BY_OPTION = 'Pass a body with -d (--data)';
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

export const API_COMMAND: Command = {
  name: 'api',
  words: 'METHOD|OPERATION [PATH|ID…]',
  summary: 'call any API operation and print the response',
  details: [
    'METHOD PATH as in /api/docs, or an operation with its IDs: api GET /api/vms/vm-1, api getVm vm-1.',
    'A query is part of the path. Control characters of the response are not printed to a terminal.',
  ].join('\n'),
  options: { data: { short: 'd', value: 'JSON', summary: 'body: JSON, @FILE, or - for standard input' } },
  run: callApi,
};

async function callApi({ words, options, session }: Invocation): Promise<void> {
  const { method, path } = readCall(words);
  const data = options.text('data');
  const body = data === undefined ? undefined : data === '-' ? readTextFile('-') : givenText(data);
  const { url, key } = session();
  const headers: Record<string, string> = { 'x-api-key': key };
  if (body !== undefined) headers['content-type'] = 'application/json';
  // Another address must not get the key.
  const asked = { method, headers, ...(body !== undefined && { body }), redirect: 'manual' as const };
  const response = await fetch(`${url}${path}`, asked).catch((error: unknown) => {
    throw noAnswer(error);
  });
  if (!response.ok)
    throw readProblem(response.status, await response.text(), response.headers.get('retry-after'));
  let last = 0x0a;
  const decoder = isTerminal(process.stdout) ? new TextDecoder() : undefined;
  for await (const chunk of response.body ?? []) {
    // Programs get the raw bytes; on a terminal, control characters are escaped.
    process.stdout.write(decoder === undefined ? chunk : cleaned(decoder.decode(chunk, { stream: true })));
    last = chunk.at(-1) ?? last;
  }
  // JSON ends without a newline; other responses stay unchanged.
  const isJson = (response.headers.get('content-type') ?? '').includes('json');
  if (isJson && last !== 0x0a) process.stdout.write('\n');
}

/** Throws UsageError unless the arguments are a method with a path, or an operation with ids. */
function readCall([first = '', ...rest]: readonly string[]): { method: string; path: string } {
  const method = first.toUpperCase();
  if (METHODS.includes(method)) {
    const [path = '', ...surplus] = rest;
    if (surplus.length > 0)
      throw new UsageError(`${method} takes a path and no other argument`, BODY_BY_OPTION);
    // `//host/…` would be another host.
    if (!path.startsWith('/') || path.startsWith('//'))
      throw new UsageError('the path must begin with a single /');
    return { method, path };
  }
  if (!Object.hasOwn(OPERATIONS, first)) {
    throw new UsageError(`${first} is neither a method nor an operation`, `Methods: ${METHODS.join(', ')}`);
  }
  const operation = OPERATIONS[first as OperationName];
  let next = 0;
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const id = rest[next++];
    if (id === undefined || ['', '.', '..'].includes(id)) throw new UsageError(`${first} needs ${name}`);
    return encodeURIComponent(id);
  });
  if (rest.length > next) throw new UsageError(`${first} takes ${next} IDs`, BODY_BY_OPTION);
  return { method: operation.method, path };
}
