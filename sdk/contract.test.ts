/** Every operation of openapi.json has a method, and the methods send requests that the cloud accepts. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { CloudError, createCloud } from './index.ts';

const ROOT = join(import.meta.dirname, '..');

test('every operation has a method, and no other name leads to one', () => {
  const { paths } = JSON.parse(readFileSync(join(ROOT, 'openapi.json'), 'utf8'));
  const declared = Object.values(paths as Record<string, Record<string, { operationId: string }>>).flatMap(
    (item) => Object.values(item).map(({ operationId }) => operationId),
  );
  const beside = ['getUsageCsv', 'ticketUrl', 'urlOf'];
  assert.deepEqual(
    Object.keys(createCloud({ baseUrl: 'http://cloud' }))
      .filter((name) => !beside.includes(name))
      .sort(),
    declared.sort(),
  );
});

interface Sent {
  readonly url: string;
  readonly init: RequestInit;
}

/** A client whose calls are answered by `answers`, one after the other, and its sent requests. */
function scripted(...answers: Response[]) {
  const sent: Sent[] = [];
  const fetch = async (url: string | URL | Request, init: RequestInit = {}) => {
    sent.push({ url: String(url), init });
    return answers.shift() as Response;
  };
  return { sent, cloud: createCloud({ baseUrl: 'http://cloud/', apiKey: 'clk_1', fetch }) };
}

test('path, query, body and key are sent', async () => {
  const { sent, cloud } = scripted(Response.json({}), Response.json({}));
  await cloud.createBucket({ name: 'photos' });
  await cloud.deleteObject('obj-1', { version_id: 'ver-1&x' });
  assert.deepEqual(
    sent.map(({ url, init: { method, body } }) => [method, url, body]),
    [
      ['POST', 'http://cloud/api/buckets', '{"name":"photos"}'],
      ['DELETE', 'http://cloud/api/storage/obj-1?version_id=ver-1%26x', undefined],
    ],
  );
  assert.equal(new Headers(sent[0]?.init.headers).get('x-api-key'), 'clk_1');
});

test('names are no path', () => {
  const { cloud } = scripted();
  assert.equal(cloud.urlOf('downloadObject', ['a/b?c']), 'http://cloud/api/storage/a%2Fb%3Fc/download');
});

test('a list goes on where its page ended', async () => {
  const link = '</api/buckets?limit=1000&cursor=c%202>; rel="next"';
  const { sent, cloud } = scripted(
    Response.json([{ name: 'a' }], { headers: { link } }),
    Response.json([{ name: 'b' }]),
  );
  const names: string[] = [];
  for await (const { name } of cloud.listBuckets()) names.push(name);
  assert.deepEqual(names, ['a', 'b']);
  assert.equal(new URL(sent[1]?.url ?? '').searchParams.get('cursor'), 'c 2');
});

test('a refusal carries code, detail, hint and fields', async () => {
  const problem = {
    code: 'invalid_request',
    status: 400,
    detail: 'no',
    hint: 'do',
    errors: [{ field: 'name', message: 'bad' }],
  };
  const { cloud } = scripted(Response.json(problem, { status: 400 }));
  await assert.rejects(cloud.listBuckets().page(), (error: CloudError) => {
    assert.ok(error instanceof CloudError);
    assert.deepEqual(
      [error.code, error.status, error.message, error.hint, error.fields],
      ['invalid_request', 400, 'no', 'do', problem.errors],
    );
    return true;
  });
});

test('no answer, and the answer of a proxy, are refusals too', async () => {
  const gone = createCloud({ baseUrl: 'http://cloud', fetch: () => Promise.reject(new TypeError('x')) });
  await assert.rejects(gone.getAccount(), { code: 'no_answer', status: 0 });
  const { cloud } = scripted(new Response('<html>', { status: 502 }));
  await assert.rejects(cloud.getAccount(), { code: 'not_understood', status: 502 });
});

test('who aborts sees the reason', async () => {
  const cloud = createCloud({ baseUrl: 'http://127.0.0.1:1' });
  const reason = new Error('left');
  await assert.rejects(cloud.getObject('obj-1', {}, { signal: AbortSignal.abort(reason) }), reason);
});

test('a parameter never leads to another call', async () => {
  const { sent, cloud } = scripted();
  for (const id of ['', '.', '..']) {
    await assert.rejects(cloud.endSession(id), {
      name: 'TypeError',
      message: `id cannot be '${id}'`,
    });
  }
  assert.deepEqual(sent, []);
});

test('a form goes through the fetch of the client, with its key and its idempotency key', async () => {
  const { sent, cloud } = scripted(Response.json({ object_id: 'obj-1' }), Response.json({ name: 'shop' }));
  const file = new Blob(['abc']);
  const answer = await cloud.uploadObject(
    'photos',
    { file, name: 'a.txt', metadata: '{"camera":"X100"}' },
    { idempotencyKey: 'k1' },
  );
  assert.equal(answer.object_id, 'obj-1');
  await cloud.loadDatabase('db-1', { file }, {}, { idempotencyKey: 'k2' });
  const [upload, load] = sent.map(({ url, init }) => {
    const headers = new Headers(init.headers);
    const fields = [...(init.body as FormData)].map(([name, value]) => [name, typeof value]);
    return { url, fields, keys: [headers.get('x-api-key'), headers.get('idempotency-key')] };
  });
  assert.deepEqual(upload, {
    url: 'http://cloud/api/buckets/photos/upload',
    fields: [
      ['name', 'string'],
      ['metadata', 'string'],
      ['file', 'object'],
    ],
    keys: ['clk_1', 'k1'],
  });
  assert.deepEqual([load?.url, load?.keys], ['http://cloud/api/databases/db-1/load', ['clk_1', 'k2']]);
});

test('an answer that is no JSON, or breaks off, is a refusal', async () => {
  const broken = () => new ReadableStream({ pull: (stream) => stream.error(new TypeError('terminated')) });
  const { cloud } = scripted(
    new Response('<html>'),
    new Response(broken()),
    new Response(broken(), { status: 500 }),
  );
  await assert.rejects(cloud.getAccount(), { code: 'not_understood', status: 200 });
  await assert.rejects(cloud.getAccount(), { code: 'no_answer' });
  await assert.rejects(cloud.getAccount(), { code: 'no_answer' });
});
