/** The minimum of a server on this runtime: 4 KiB for every GET; every body is read and dropped. */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const payload = randomBytes(4096);

const server = createServer((request, response) => {
  if (request.method === 'GET') {
    response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': payload.length });
    response.end(payload);
    return;
  }
  request.on('data', () => {});
  request.on('end', () => {
    response.writeHead(200, { 'content-length': 2 });
    response.end('ok');
  });
});

server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
process.once('SIGTERM', () => process.exit());
