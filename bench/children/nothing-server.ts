/**
 * Answers the calls of attackers.ts about as fast as a cloud under attack, without doing any work, so that a
 * run beside it shows the host's load from that program alone.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

const UPLOAD_MS = 15;

function answer(response: ServerResponse, status: number): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end('{}');
}

const server = createServer((request, response) => {
  request.resume().on('error', () => {});
  request.on('end', () => {
    if (request.headers.cookie !== undefined) answer(response, 401);
    else if (request.url?.endsWith('/upload')) setTimeout(() => answer(response, 200), UPLOAD_MS);
    // Endless statements, and calls that wait for them, have no answer.
  });
});
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
