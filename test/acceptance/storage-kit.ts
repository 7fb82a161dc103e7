/** Shared by the tests of storage: buckets, hand-written forms, and problems checked in full. */
import assert from 'node:assert/strict';
import type { Answer, Client } from '../harness/client.ts';

let buckets = 0;

/** A bucket with its own name. */
export async function newBucket(
  user: Client,
  settings: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  const name = `bucket-${++buckets}`;
  const { status, body } = await user.call('/api/buckets', { json: { name, ...settings } });
  assert.equal(status, 201, JSON.stringify(body));
  return name;
}

/** The body of a successful answer. */
export function bodyOf({ status, body }: Answer): Answer['body'] {
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

/** A whole listing, or its first page. */
export async function listOf(user: Client, bucket: string, query = ''): Promise<Answer['body'][]> {
  return bodyOf(await user.call(`/api/buckets/${bucket}/files${query}`));
}

/** Contract §2: the status, the code, and every member that problems have. */
export function assertProblem({ status, headers, body }: Answer, wanted: number, code: string): void {
  assert.deepEqual([status, body.code], [wanted, code], JSON.stringify(body));
  assert.match(headers.get('content-type') ?? '', /^application\/problem\+json/);
  assert.equal(body.status, wanted);
  for (const member of ['type', 'title', 'detail', 'error', 'request_id']) {
    assert.equal(typeof body[member], 'string', member);
    assert.notEqual(body[member], '', member);
  }
  assert.equal(body.error, body.detail);
  assert.equal(body.request_id, headers.get('x-request-id'));
  assert.doesNotMatch(JSON.stringify(body), /\.ts:\d|node_modules|SQLITE|SELECT |INSERT /);
}

export const BOUNDARY = 'hand-written-boundary';

/** A form field, as sent. */
export function fieldPart(name: string, value: string): string {
  return `Content-Disposition: form-data; name="${name}"\r\n\r\n${value}`;
}

/** A file part, as sent. */
export function filePart(content: string, fileName = 'file.bin', type = 'application/octet-stream'): string {
  const disposition = `Content-Disposition: form-data; name="file"; filename="${fileName}"`;
  return `${disposition}\r\nContent-Type: ${type}\r\n\r\n${content}`;
}

/** The complete form with parts in this order. */
export function rawForm(...parts: string[]): string {
  return `${parts.map((part) => `--${BOUNDARY}\r\n${part}\r\n`).join('')}--${BOUNDARY}--\r\n`;
}

/** Sends a hand-written form. */
export function sendRaw(user: Client, bucket: string, form: string): Promise<Answer> {
  return user.call(`/api/buckets/${bucket}/upload`, {
    headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` },
    body: form,
  });
}

export const TIME = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/;
