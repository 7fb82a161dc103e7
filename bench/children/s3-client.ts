/** One object to or from S3 with aws4fetch only, or from Cloudlet with fetch. Prints its seconds. */
import { randomBytes } from 'node:crypto';
import { AwsClient } from 'aws4fetch';
import { childInput } from '../child.ts';

interface Input {
  readonly method: 'PUT' | 'GET';
  readonly url: string;
  readonly bytes: number;
  /** Of S3. */
  readonly keys?: { readonly accessKeyId: string; readonly secretAccessKey: string };
  /** Of Cloudlet. */
  readonly key?: string;
}

const { method, url, bytes, keys, key } = childInput<Input>();
const body = method === 'PUT' ? randomBytes(bytes) : null;
const client = keys && new AwsClient({ ...keys, service: 's3', region: 'us-east-1', retries: 0 });

const began = performance.now();
const response = await (client
  ? client.fetch(url, { method, body })
  : fetch(url, { headers: { 'x-api-key': key ?? '' } }));
let received = 0;
for await (const piece of response.body ?? []) received += piece.length;
const seconds = (performance.now() - began) / 1000;
if (!response.ok || (method === 'GET' && received !== bytes)) {
  throw new Error(`${method} was answered ${response.status} with ${received} bytes`);
}
console.log(JSON.stringify({ seconds }));
