/** Moves, and streams that are uploaded, while files and objects change under way: nothing is lost. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

const PROGRAM = join(import.meta.dirname, '../../build/cli/cloudlet.mjs');
const home = mkdtempSync(join(tmpdir(), 'cloudlet-moves-'));
after(() => rmSync(home, { recursive: true }));

let answer: (request: IncomingMessage, response: ServerResponse) => void;
const seen: string[] = [];
const server = createServer((request, response) => {
  const { method, url, headers } = request;
  seen.push([method, url, headers['if-match'] ?? ''].join(' ').trim());
  request.resume().once('end', () => answer(request, response));
}).listen(0, '127.0.0.1');
await once(server, 'listening');
after(() => server.close().closeAllConnections());
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

async function run(args: readonly string[], input: Uint8Array = new Uint8Array()) {
  seen.length = 0;
  const keys = { CLOUDLET_ACCESS_KEY_ID: 'A', CLOUDLET_SECRET_ACCESS_KEY: 'S', CLOUDLET_S3_URL: url };
  const env = { PATH: process.env.PATH, HOME: home, CLOUDLET_URL: url, CLOUDLET_API_KEY: 'clk', ...keys };
  const child = spawn(process.execPath, [PROGRAM, ...args], { env, cwd: home });
  let err = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    err += text;
  });
  child.stdin.on('error', () => {}).end(input);
  const [code] = await once(child, 'close');
  return { code, err };
}

const refusal = (code: string) => `<Error><Code>${code}</Code><Message>refused</Message></Error>`;

test('an object that was replaced while it was downloaded is kept by mv', async () => {
  let etag = 'one';
  answer = ({ method, headers }, response) => {
    const isWanted = headers['if-match'] === `"${etag}"`;
    if (method === 'DELETE' && !isWanted) response.writeHead(412).end(refusal('PreconditionFailed'));
    else if (method === 'DELETE') response.writeHead(204).end();
    else
      response
        .writeHead(200, { etag: `"${etag}"`, 'content-length': '4' })
        .end(method === 'GET' ? 'text' : '');
    if (method === 'GET') etag = 'two';
  };
  const { code, err } = await run(['mv', 's3://b/a', 'moved']);
  assert.equal(code, 6, err);
  assert.match(err, /s3:\/\/b\/a was replaced while it was being copied, and is kept/);
  assert.equal(readFileSync(join(home, 'moved'), 'utf8'), 'text');
  etag = 'one';
  answer = ({ method }, response) => {
    // The answer to an earlier attempt was lost: the object is gone.
    if (method === 'GET') response.writeHead(200, { etag: '"one"', 'content-length': '4' }).end('text');
    else if (method === 'DELETE') response.writeHead(404).end(refusal('NoSuchKey'));
    else if (seen.length > 2) response.writeHead(404).end();
    else response.writeHead(200, { etag: '"one"', 'content-length': '4' }).end();
  };
  assert.equal((await run(['mv', 's3://b/a', 'gone'])).code, 0);
});

test('a file that changes while it is uploaded is kept by mv', async () => {
  const path = join(home, 'log');
  writeFileSync(path, 'first\n');
  answer = (_, response) => {
    writeFileSync(path, 'first\nsecond\n');
    response.writeHead(200, { etag: '"e"' }).end();
  };
  const { code, err } = await run(['mv', 'log', 's3://b/log']);
  assert.equal(code, 6, err);
  assert.match(err, /log changed while it was being uploaded, and is kept/);
  assert.equal(readFileSync(path, 'utf8'), 'first\nsecond\n');
});

test('a stream that cannot be stored leaves no parts behind that cost', async () => {
  answer = ({ method, url: path = '' }, response) => {
    if (method === 'POST' && path.includes('uploads'))
      response.end('<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>');
    else if (method === 'PUT') response.writeHead(403).end(refusal('AccessDenied'));
    else response.writeHead(204).end();
  };
  const { code, err } = await run(['cp', '-', 's3://b/big'], Buffer.alloc(90 * 2 ** 20));
  assert.equal(code, 4, err);
  assert.deepEqual(seen.slice(-1), ['DELETE /b/big?uploadId=u1']);
});

test('a dump follows no foretold link, and replaces no device', async () => {
  const outside = join(home, 'outside');
  writeFileSync(outside, 'mine');
  symlinkSync(outside, join(home, 'd.sql.part'));
  answer = ({ url: path = '' }, response) => {
    const one = { database_id: 'db-1', name: 'shop' };
    if (path.includes('/dump')) response.end('-- dump');
    else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify([one]));
  };
  const { code, err } = await run(['db', 'dump', 'shop', 'd.sql']);
  assert.equal(code, 0, err);
  assert.deepEqual(
    [readFileSync(outside, 'utf8'), readFileSync(join(home, 'd.sql'), 'utf8')],
    ['mine', '-- dump'],
  );
  const child = await run(['db', 'dump', 'shop', '/dev/null']);
  assert.equal(child.code, 0, child.err);
  assert.ok(!existsSync('/dev/null.part'));
});
