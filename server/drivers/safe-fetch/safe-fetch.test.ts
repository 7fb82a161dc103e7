import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Writable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { systemClock } from '../../platform/clock.ts';
import { OutboundRefused, type OutboundRequest } from '../../platform/outbound.ts';
import { mayReach, networkList } from './networks.ts';
import { SafeFetch } from './safe-fetch.ts';

/** One byte at a time, each long before the time-out for silence. */
function drip(to: Writable, first: string): void {
  to.write(first);
  const timer = setInterval(() => to.write('a'), 20);
  to.on('close', () => clearInterval(timer)).on('error', () => undefined);
}

const NOTHING = networkList([]);

test('only the public Internet may be reached', () => {
  const forbidden = [
    ...['0.0.0.0', '10.1.2.3', '100.64.0.1', '100.127.255.255', '127.0.0.1', '127.255.255.255'],
    ...['169.254.169.254', '172.16.0.1', '172.31.255.255', '192.0.0.1', '192.0.2.1', '192.88.99.1'],
    ...['192.168.1.1', '198.18.0.1', '198.19.255.255', '198.51.100.1', '203.0.113.1', '224.0.0.1'],
    ...['239.255.255.255', '240.0.0.1', '255.255.255.255'],
    ...['::', '::1', '::127.0.0.1', '::ffff:127.0.0.1', '::ffff:8.8.8.8', '::ffff:0:127.0.0.1'],
    ...['64:ff9b::7f00:1', '64:ff9b:1::1', '100::1', '2001::1', '2001:db8::1', '2002:7f00:1::1'],
    ...['3fff::1', '5f00::1', 'fc00::1', 'fd12::1', 'fe80::1', 'fe80::1%lo', 'fec0::1', 'ff02::1'],
    ...['2606:4700::1%eth0', 'example.org', ''],
  ];
  for (const address of forbidden) assert.equal(mayReach(address, NOTHING), false, address);
  const fine = ['1.1.1.1', '8.8.8.8', '100.63.255.255', '100.128.0.0', '172.15.255.255', '172.32.0.0'];
  const fineToo = ['192.169.0.1', '223.255.255.255', '2606:4700::1111', '2a00:1450::1', '2001:4860::1'];
  for (const address of [...fine, ...fineToo]) assert.equal(mayReach(address, NOTHING), true, address);
});

test('what the operator allows goes before all rules, and nothing else does', () => {
  const allowed = networkList(['10.0.0.0/8', 'fd00::/8']);
  for (const address of ['10.1.1.1', 'fd00::1', '::ffff:10.1.1.1']) assert.ok(mayReach(address, allowed));
  for (const address of ['11.0.0.1', '192.168.0.1', 'fc00::1']) {
    assert.equal(mayReach(address, allowed), address === '11.0.0.1', address);
  }
  for (const wrong of ['10.0.0.0', '10.0.0.0/33', 'x/8', '::/129', '']) {
    assert.throws(() => networkList([wrong]), /is not a network/);
  }
});

/** Sends the same bytes as long as the client reads. */
function flood(to: Writable, words: string): void {
  const piece = words.repeat(1000);
  const more = () => {
    while (to.write(piece));
  };
  to.on('error', () => {}).on('drain', more);
  more();
}

describe('requests', () => {
  let server: Server;
  let port = 0;
  const seen: { url: string; host: string; method: string; body: string }[] = [];
  before(async () => {
    server = createServer(async (request, response) => {
      const url = request.url ?? '';
      let body = '';
      for await (const piece of request) body += piece;
      seen.push({ url, host: request.headers.host ?? '', method: request.method ?? '', body });
      const to = new URL(url, 'http://x').searchParams.get('to');
      if (to !== null) response.writeHead(302, { location: to }).end();
      else if (url === '/hang') response.write('a');
      else if (url === '/silent') return;
      else if (url === '/drip') drip(response, 'a');
      else if (url === '/drip-head') drip(response.socket as Writable, 'HTTP/1.1 200 OK\r\nx: ');
      else if (url === '/hints') flood(response.socket as Writable, 'HTTP/1.1 103 Early Hints\r\n\r\n');
      else if (url === '/long') response.end('x'.repeat(5000));
      else if (url === '/two') {
        response.write('x'.repeat(3000));
        setTimeout(() => response.end('y'), 100);
      } else if (url === '/chunked') {
        response.write('x'.repeat(3000));
        response.end('x'.repeat(3000));
      } else response.end('hello');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    port = (server.address() as AddressInfo).port;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  const clock = systemClock;
  const strict = new SafeFetch({ clock, allowed: [], stallMs: 300 });
  const open = new SafeFetch({ clock, allowed: ['127.0.0.0/8', '::1/128'], stallMs: 300 });
  async function text(fetcher: SafeFetch, url: string, more: Partial<OutboundRequest> = {}): Promise<string> {
    const answer = await fetcher.fetch({ url, maxBytes: 4000, totalMs: 5000, ...more });
    let got = '';
    for await (const piece of answer.bytes) got += Buffer.from(piece).toString();
    return got;
  }
  const refuses = (kind: OutboundRefused['kind']) => (error: unknown) =>
    error instanceof OutboundRefused && error.kind === kind;

  test('this host is not reached, however it is written', async () => {
    const before = seen.length;
    const hosts = [
      ...['127.0.0.1', '127.1', '2130706433', '0x7f000001', '0x7f.1', '0177.0.0.1', '017700000001', '0'],
      ...['localhost', 'LOCALHOST', '①②⑦.0.0.1', '127.0.0.1.'],
      ...['[::1]', '[::]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[0:0:0:0:0:ffff:127.0.0.1]'],
      ...['[64:ff9b::7f00:1]', '[2002:7f00:1::]', '169.254.169.254', '10.0.0.1'],
    ];
    for (const host of hosts) {
      await assert.rejects(text(strict, `http://${host}:${port}/`), refuses('forbidden'), host);
      await assert.rejects(text(strict, `https://${host}:${port}/`), refuses('forbidden'), host);
    }
    assert.equal(seen.length, before, 'not one connection was made');
  });

  test('where it is allowed it is reached, by address and by name', async () => {
    assert.equal(await text(open, `http://127.0.0.1:${port}/`), 'hello');
    assert.equal(await text(open, `http://2130706433:${port}/`), 'hello');
    assert.equal(await text(open, `http://localhost:${port}/name`), 'hello');
    assert.deepEqual(seen.at(-1), { url: '/name', host: `localhost:${port}`, method: 'GET', body: '' });
    const body = Buffer.from('{"a":1}');
    await text(open, `http://127.0.0.1:${port}/hook`, { method: 'POST', body });
    assert.deepEqual([seen.at(-1)?.method, seen.at(-1)?.body], ['POST', '{"a":1}']);
  });

  test('a redirect is checked like the first request, and there are only so many', async () => {
    const half = new SafeFetch({ clock, allowed: ['127.0.0.1/32'], stallMs: 300 });
    const redirect = (to: string) => `http://127.0.0.1:${port}/?to=${encodeURIComponent(to)}`;
    assert.equal(await text(half, redirect('/fine')), 'hello');
    for (const host of ['127.0.0.2', '[::1]', '169.254.169.254', '10.0.0.1']) {
      await assert.rejects(text(half, redirect(`http://${host}:${port}/`)), refuses('forbidden'), host);
    }
    for (const to of ['file:///etc/passwd', 'ftp://127.0.0.1/', 'http://a:b@127.0.0.1/', 'http://']) {
      await assert.rejects(text(half, redirect(to)), refuses('invalid'), to);
    }
    let url = '/end';
    for (let hops = 1; hops <= 6; hops++) {
      url = redirect(url);
      if (hops <= 5) assert.equal(await text(half, url), 'hello', `${hops} hops`);
      else await assert.rejects(text(half, url), refuses('failed'));
    }
    await text(half, redirect('/not-followed'), { method: 'POST' });
    assert.equal(seen.at(-1)?.url.startsWith('/?to='), true);
  });

  test('the origin that the operator named is reached inside, and no other, also not by a redirect', async () => {
    for (const host of ['127.0.0.1', 'localhost']) {
      const insideOrigin = `http://${host}:${port}`;
      assert.equal(await text(strict, `${insideOrigin}/`, { insideOrigin }), 'hello');
      for (const other of [`http://127.0.0.2:${port}/`, `http://[::1]:${port}/`, 'http://127.0.0.1:1/']) {
        await assert.rejects(text(strict, other, { insideOrigin }), refuses('forbidden'), other);
        const redirect = `${insideOrigin}/?to=${encodeURIComponent(other)}`;
        await assert.rejects(text(strict, redirect, { insideOrigin }), refuses('forbidden'), other);
      }
    }
  });

  test('a request that may ask only some URLs is refused the others, also by a redirect', async () => {
    const mayAsk = (url: URL) => !url.pathname.startsWith('/other');
    const at = `http://127.0.0.1:${port}`;
    assert.equal(await text(open, `${at}/?to=/fine`, { mayAsk }), 'hello');
    await assert.rejects(text(open, `${at}/other`, { mayAsk }), refuses('forbidden'));
    await assert.rejects(text(open, `${at}/?to=/other`, { mayAsk }), refuses('forbidden'));
    assert.ok(seen.every(({ url }) => url !== '/other'));
  });

  test('too many bytes, silence and lateness end it', async () => {
    await assert.rejects(text(open, `http://127.0.0.1:${port}/long`), /larger than 4000/);
    await assert.rejects(text(open, `http://127.0.0.1:${port}/chunked`), /larger than 4000/);
    await assert.rejects(text(open, `http://127.0.0.1:${port}/silent`), /no data/);
    await assert.rejects(text(open, `http://127.0.0.1:${port}/hang`), refuses('failed'));
    await assert.rejects(text(open, `http://127.0.0.1:${port}/silent`, { totalMs: 50 }), /timed out/);
    await assert.rejects(text(open, 'http://127.0.0.1:1/'), /ECONNREFUSED/);
    const reason = new Error('enough');
    const signal = AbortSignal.abort(reason);
    await assert.rejects(text(open, `http://127.0.0.1:${port}/`, { signal }), reason);
  });

  test('an answer that drips is given up, be it in its head or after; one that is read slowly is not', async () => {
    const impatient = new SafeFetch({ clock, allowed: ['127.0.0.0/8'], slowMs: 300, slowBytes: 1000 });
    for (const path of ['drip', 'drip-head']) {
      await assert.rejects(
        text(impatient, `http://127.0.0.1:${port}/${path}`),
        /slow: less than 1000 bytes/,
        path,
      );
    }
    const far = new SafeFetch({ clock, allowed: ['127.0.0.0/8'], slowMs: 300, slowBytes: 100_000 });
    const url = `http://127.0.0.1:${port}/two`;
    const { bytes } = await far.fetch({ url, maxBytes: 10_000, totalMs: 5000 });
    const pieces = bytes[Symbol.asyncIterator]();
    assert.equal((await pieces.next()).done, false);
    await new Promise((resolve) => setTimeout(resolve, 500));
    assert.equal((await pieces.next()).done, false);
    assert.equal((await pieces.next()).done, true);
  });

  test('interim responses without end are given up at once', async () => {
    await assert.rejects(
      text(open, `http://127.0.0.1:${port}/hints`, { totalMs: 10_000 }),
      /too many interim responses/,
    );
  });

  test('what is no plain URL is refused', async () => {
    for (const url of [
      '',
      'x',
      '/a',
      'file:///etc/passwd',
      'http://a@127.0.0.1/',
      `http://a/${'x'.repeat(5000)}`,
    ]) {
      await assert.rejects(text(open, url), refuses('invalid'), url.slice(0, 40));
    }
  });
});
