/** What someone at a terminal sees: lines that end, HEAD that works, words that say what to do. */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { openSocket, readToEnd } from '../harness/raw-http.ts';

const cloud = await CloudProcess.start();
after(() => cloud.stop());
const client = await CheckedClient.open(cloud.api);
const user = client.as((await client.register()).api_key);

describe('JSON ends with a line end', () => {
  /** The text of the answer, which its Content-Length, if it has one, must match. */
  const read = async (path: string, call: Parameters<typeof user.fetch>[1] = {}) => {
    const response = await user.fetch(path, call);
    const text = await response.text();
    const length = response.headers.get('content-length');
    if (length !== null) assert.equal(Number(length), Buffer.byteLength(text), path);
    assert.match(text, /[^\n]\n$/, path);
    return text;
  };

  test('as an answer, a list, an empty list and a problem', async () => {
    assert.match(await read('/api/account'), /}\n$/);
    assert.equal(await read('/api/buckets'), '[]\n');
    await user.expect(201, '/api/buckets', { json: { name: 'lines' } });
    assert.match(await read('/api/buckets'), /}]\n$/);
    assert.match(await read('/api/nothing'), /}\n$/);
  });

  test('as the replay of an answer and of a refusal, which are the same bytes', async () => {
    for (const name of ['lines-once', 'lines']) {
      const call = { json: { name }, headers: { 'idempotency-key': `key-${name}` } };
      const first = await read('/api/buckets', call);
      assert.equal(await read('/api/buckets', call), first);
    }
  });

  test('as the answer to bytes that are no request', async () => {
    const socket = await openSocket(cloud.api);
    socket.write('nonsense\r\n\r\n');
    assert.match(await readToEnd(socket), /}\n$/);
  });
});

describe('HEAD', () => {
  const places = ['/healthz', '/readyz', '/metrics', '/api/docs', '/api/account', '/api/buckets'];
  for (const path of [...places, '/api/openapi.json', '/api/billing/ledger', '/api/nothing']) {
    test(`${path} is answered like GET, without the body`, async () => {
      const got = await user.fetch(path);
      await got.text();
      const head = await user.fetch(path, { method: 'HEAD' });
      assert.equal(await head.text(), '');
      assert.equal(head.status, got.status);
      for (const name of ['content-type', 'content-security-policy', 'cache-control'])
        assert.equal(head.headers.get(name), got.headers.get(name), name);
    });
  }

  test('without a key it is refused like GET', async () => {
    assert.equal((await client.fetch('/api/buckets', { method: 'HEAD' })).status, 401);
  });
});

test('an unknown path names the one that was meant', async () => {
  const problem = await user.refused(404, 'not_found', ['/api/bukets/lines/files']);
  assert.equal(problem.hint, 'Did you mean /api/buckets/lines/files?');
});
