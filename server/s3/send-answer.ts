/** Sends the answer of an operation, or a refusal while the client may be sending still. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { dropRest } from '../http/body.ts';
import type { S3Answer, S3Call } from './s3-call.ts';

const XML = 'application/xml';
const JSON_TYPE = 'application/json';

/** `common`: headers of every response. */
export function send(
  { request, response, common }: Pick<S3Call, 'request' | 'response' | 'common'>,
  { status = 200, headers = {}, xml, json }: S3Answer,
): void {
  const all: Record<string, string> = { ...common, ...headers };
  const body = xml ?? json;
  if (body === undefined || request.method === 'HEAD' || status === 204 || status === 304) {
    if (body === undefined && status !== 204 && status !== 304) all['content-length'] ??= '0';
    response.writeHead(status, all).end();
    return;
  }
  all['content-type'] = xml === undefined ? JSON_TYPE : XML;
  all['content-length'] = String(Buffer.byteLength(body));
  response.writeHead(status, all).end(body);
}

/** Lets the client read the refusal: it may be sending still. */
export function dropBody(request: IncomingMessage, response: ServerResponse): void {
  if (request.readableEnded || request.complete) return void request.resume();
  // Without the interim response a client that waits for it sends nothing, or all: nobody knows.
  if (request.headers.expect !== undefined) return void response.setHeader('connection', 'close');
  dropRest(request);
}
