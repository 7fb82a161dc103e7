/** The client lists a million keys, page by page, with the memory that it needs for a few. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after, test } from 'node:test';
import { CliUser } from '../acceptance/cli-kit.ts';

const KEYS = 1_000_000;
const PAGE = 1000;
/** Less than the names of a million keys need. */
const HEAP_MB = 24;
const user = new CliUser();
after(() => user.remove());

/** A page as returned by the S3 endpoint: storing a listing of that length takes minutes. */
function pageAfter(at: number): string {
  const keys = Array.from({ length: PAGE }, (_, each) => {
    const name = `folder/${String(at + each).padStart(9, '0')}-${'x'.repeat(40)}.txt`;
    return (
      `<Contents><Key>${name}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>` +
      `<ETag>&quot;d41d8cd98f00b204e9800998ecf8427e&quot;</ETag><Size>${at + each}</Size></Contents>`
    );
  });
  const next = at + PAGE;
  const more =
    next < KEYS
      ? `<IsTruncated>true</IsTruncated><NextContinuationToken>${next}</NextContinuationToken>`
      : '<IsTruncated>false</IsTruncated>';
  return `<?xml version="1.0"?><ListBucketResult>${more}${keys.join('')}</ListBucketResult>`;
}

test('a million keys are listed with little memory', async () => {
  const server = createServer((request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://any');
    response.writeHead(200, { 'content-type': 'application/xml' });
    response.end(pageAfter(Number(searchParams.get('continuation-token') ?? 0)));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  const url = `http://127.0.0.1:${address.port}`;
  const env = {
    CLOUDLET_URL: url,
    CLOUDLET_API_KEY: 'clk_x',
    CLOUDLET_S3_URL: url,
    CLOUDLET_ACCESS_KEY_ID: 'CLAK',
    CLOUDLET_SECRET_ACCESS_KEY: 'secret',
    NODE_OPTIONS: `--max-old-space-size=${HEAP_MB}`,
  };
  const child = user.start(['ls', '-r', 's3://many/'], { env });
  let [lines, said] = [0, ''];
  child.stdout?.on('data', (chunk: Buffer) => {
    for (const byte of chunk) if (byte === 0x0a) lines += 1;
  });
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    said += text;
  });
  const [code] = await once(child, 'close');
  server.closeAllConnections();
  server.close();
  assert.deepEqual([code, lines], [0, KEYS], said.slice(0, 2000));
});
