import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type TestContext, test } from 'node:test';
import { isAppError } from '../platform/errors.ts';
import { hostCheck, hostsOf } from './origins.ts';

const NAMES = ['Cloud.Lan', ...hostsOf('https://cloud.example.org', '', 'http://[fd00::1]:9000')];

/** The check of a server that listens on `address`. */
async function listening(t: TestContext, address: string) {
  const server = createServer();
  const check = hostCheck(server, NAMES);
  server.listen(0, address);
  await once(server, 'listening');
  t.after(() => server.close());
  return (hosts: readonly string[], httpVersion = '1.1') => {
    const rawHeaders = ['Accept', '*/*', ...hosts.flatMap((host) => ['hOsT', host]), 'X-Host', 'evil'];
    check({ rawHeaders, httpVersion, headers: { host: hosts[0] } } as unknown as IncomingMessage);
  };
}

const OURS = [
  ...['localhost', 'LOCALHOST:8080', 'localhost.', 'x.localhost:1', '127.0.0.1', '127.0.0.1:80'],
  ...['[::1]', '[::1]:8080', '10.1.2.3:9', 'cloud.lan:8080', 'cloud.example.org', 'CLOUD.example.org:443'],
  '[fd00::1]:9000',
];
const FOREIGN = [
  ...['evil.example', 'evil.example:8080', 'localhost.evil.example', 'notlocalhost', 'x', '', ':8080', '.'],
  ...['127.0.0.1.evil.example', '127.1', '0x7f000001', 'example.org', 'localhost:80:80', 'localhost:x'],
  ...['[evil.example]', '[::1', '::1', 'a@localhost', 'localhost/', 'localhost evil.example'],
];

for (const address of ['127.0.0.1', '127.9.9.9', '::1']) {
  test(`on ${address} only localhost, addresses and the names of the settings pass`, async (t) => {
    const check = await listening(t, address).catch(() => null);
    if (check === null) return t.skip(`this machine has no ${address}`);
    for (const host of OURS) check([host]);
    for (const host of FOREIGN) {
      assert.throws(
        () => check([host]),
        (error) => isAppError(error, 'misdirected_request') && /CLOUDLET_PUBLIC_URL/.test(error.hint ?? ''),
        host,
      );
    }
  });
}

test('on other addresses every host passes, but only one', async (t) => {
  const check = await listening(t, '0.0.0.0');
  for (const host of [...OURS, ...FOREIGN]) check([host]);
  const isBad = (error: unknown) => isAppError(error, 'bad_http');
  assert.throws(() => check(['localhost', 'localhost']), isBad);
  assert.throws(() => check([]), isBad);
  check([], '1.0');
});
