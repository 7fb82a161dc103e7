/**
 * Runs in a separate network, for own-host.test.ts, in which this host has public addresses. Prints the
 * outcome of each request as JSON.
 */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SafeFetch } from '../drivers/safe-fetch/safe-fetch.ts';
import { systemClock } from '../platform/clock.ts';
import { OutboundRefused } from '../platform/outbound.ts';

const ip = (words: string) => {
  const { status, stderr } = spawnSync('ip', words.split(' '), { encoding: 'utf8' });
  if (status !== 0) throw new Error(`ip ${words}: ${stderr}`);
};

const seen: string[] = [];
const server = createServer((request, response) => {
  seen.push(request.headers.host?.replace(/:\d+$/, '') ?? '');
  const to = new URL(request.url ?? '', 'http://x').searchParams.get('to');
  if (to === null) response.end('hello');
  else response.writeHead(302, { location: to }).end();
});
server.listen(0, '::');
await once(server, 'listening');
const { port } = server.address() as AddressInfo;

ip('link set lo up');
const outbound = new SafeFetch({ clock: systemClock, allowed: ['9.9.9.0/24'] });
// Only now: the addresses of the host at the time of the request are checked.
for (const address of ['8.8.6.1/32', '9.9.9.9/32', '2600::1/128']) ip(`address add ${address} dev lo`);
// Addresses of this host that no interface has.
ip('route add local 8.8.9.0/24 dev lo');

async function outcome(host: string, path = '/'): Promise<string> {
  const url = `http://${host}:${port}${path}`;
  try {
    const { status } = await outbound.fetch({ url, maxBytes: 1000, totalMs: 10_000 });
    return String(status);
  } catch (error) {
    return error instanceof OutboundRefused ? `${error.kind}: ${error.message}` : String(error);
  }
}

const outcomes: Record<string, string> = {};
const [, , ...hosts] = process.argv;
for (const host of hosts) outcomes[host] = await outcome(host);
const redirect = `/?to=${encodeURIComponent(`http://8.8.6.1:${port}/`)}`;
outcomes.redirect = await outcome('9.9.9.9', redirect);
// Without the rules all of them answer.
const answers = await Promise.all(hosts.map(async (host) => (await fetch(`http://${host}:${port}/`)).status));
server.close();
console.log(JSON.stringify({ outcomes, seen, answers }));
