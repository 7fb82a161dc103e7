/** Sends the answer of an operation, or a refusal while the client may be sending still. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { dropRest } from '../http/body.ts';
import type { S3Answer } from './s3-call.ts';

const XML = 'application/xml';
const JSON_TYPE = 'application/json';

export function send(
  response: ServerResponse,
  { status = 200, headers = {}, xml, json }: S3Answer,
  isHead: boolean,
): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  response.statusCode = status;
  const body = xml ?? json;
  if (body === undefined || isHead || status === 204 || status === 304) {
    if (body === undefined && status !== 204 && status !== 304 && !response.hasHeader('content-length')) {
      response.setHeader('content-length', '0');
    }
    response.end();
    return;
  }
  response.setHeader('content-type', xml === undefined ? JSON_TYPE : XML);
  response.setHeader('content-length', String(Buffer.byteLength(body)));
  response.end(body);
}

/** Lets the client read the refusal: it may be sending still. */
export function dropBody(request: IncomingMessage, response: ServerResponse): void {
  if (request.readableEnded || request.complete) return void request.resume();
  // Without the interim response a client that waits for it sends nothing, or all: nobody knows.
  if (request.headers.expect !== undefined) return void response.setHeader('connection', 'close');
  dropRest(request);
}
