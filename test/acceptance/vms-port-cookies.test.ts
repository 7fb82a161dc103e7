/**
 * A published port at the console's host name, in real browsers: a machine receives the session's cookie and
 * can set one, but gets no access to an account with it, nor can it sign a visitor in to its own.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { sessionOf } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { freePort } from '../harness/free-port.ts';
import { eventually } from '../harness/waiting.ts';
import { launchBrowser, noBrowser } from './browser-kit.ts';
import { assertConsoleBuilt, PASSWORD } from './console-kit.ts';
import { Firefox } from './firefox-kit.ts';
import { cannotRunGuests, newVm, removeAll } from './vms-kit.ts';

/** `look` shows the cookies of its visitor; `plant` and `beside` set one with the session's name. */
const USER_DATA = `#!/bin/sh
mkdir -p /www/cgi-bin
cd /www/cgi-bin
printf '#!/bin/sh\\nprintf "Content-Type: text/html\\\\r\\\\n\\\\r\\\\n"; echo "[$HTTP_COOKIE]"' >look
for path in plant=/ beside=/api; do
  printf '#!/bin/sh\\nprintf "Content-Type: text/html\\\\r\\\\nSet-Cookie: cloudlet_session=%%s; Path=%s\\\\r\\\\n\\\\r\\\\nset" "$QUERY_STRING"' \${path#*=} >\${path%=*}
done
chmod +x *
httpd -p 80 -h /www
`;

interface Visitor {
  goto(url: string): Promise<unknown>;
  evaluate(expression: string): Promise<unknown>;
  close(): Promise<void>;
}

const BROWSERS = {
  Chromium: { skip: noBrowser, open: openChromium },
  Firefox: { skip: notInstalled('firefox-esr'), open: () => Firefox.open() },
} satisfies Record<string, { skip: string | false; open: () => Promise<Visitor> }>;

async function openChromium(): Promise<Visitor> {
  const browser = await launchBrowser();
  const page = await browser.newPage();
  return {
    goto: (url) => page.goto(url),
    evaluate: (expression) => page.evaluate(expression),
    close: () => browser.close(),
  };
}

const skip = cannotRunGuests();
let cloud: CloudProcess;
let anyone: CheckedClient;
let attacker: CheckedClient;
/** The session of the attacker's own account. */
let own: ReturnType<typeof sessionOf>;
let machine: string;

before(async () => {
  if (skip) return;
  assertConsoleBuilt();
  const port = await freePort();
  const env = { CLOUDLET_PUBLISHED_PORTS: `${port}-${port}`, CLOUDLET_PUBLISHED_HOST: '127.0.0.1' };
  cloud = await CloudProcess.start({ env });
  anyone = await CheckedClient.open(cloud.api);
  const account = await anyone.register();
  attacker = anyone.as(account.api_key);
  own = sessionOf(await logIn(account.username));
  const vm = await newVm(attacker, { name: 'web', user_data: USER_DATA });
  const { address } = await attacker.expect(201, `${vm}/ports`, { json: { port: 80 } });
  assert.equal(address, `127.0.0.1:${port}`, 'the host of the console');
  machine = `http://${address}/cgi-bin`;
  await attacker.expect(200, `${vm}/start`, { method: 'POST' });
  await eventually('its web server answers', async () => (await look()) === '[]');
});
after(async () => {
  if (skip) return;
  await removeAll(attacker);
  await cloud.stop();
});

const logIn = (username: string) => anyone.call('/api/login', { json: { username, password: PASSWORD } });
const look = () =>
  fetch(`${machine}/look`, { signal: AbortSignal.timeout(5000) }).then(
    async (answer) => (await answer.text()).trim(),
    () => null,
  );

/** Signs in with the form of the current page. */
async function signIn(visitor: Visitor, username: string): Promise<void> {
  await eventually('the form', () =>
    visitor.evaluate(`document.querySelector('input[name=password]') !== null`),
  );
  await visitor.evaluate(`(async () => {
    const fill = (name, value) => {
      const input = document.querySelector('input[name=' + name + ']');
      Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(input, value);
      input.dispatchEvent(new Event('input', { bubbles: true }));
    };
    fill('username', '${username}');
    fill('password', '${PASSWORD}');
    document.querySelector('button[type=submit]').click();
  })()`);
  await says(visitor, username);
}

/** Resolves when the page is signed in to this account. */
const says = (visitor: Visitor, username: string) =>
  eventually(`${username} is signed in`, () =>
    visitor.evaluate(`document.querySelector('[aria-label="Signed in as ${username}"]') !== null`),
  );

for (const [name, { skip: missing, open }] of Object.entries(BROWSERS)) {
  test(`${name}: a machine at the console's host opens nothing by cookies`, {
    skip: skip || missing,
  }, async () => {
    const { username } = await anyone.register();
    const visitor: Visitor = await open();
    try {
      await visitor.goto(`${cloud.api}/sign-in`);
      await signIn(visitor, username);

      await visitor.goto(`${machine}/look`);
      const shown = String(await visitor.evaluate('document.body.innerText')).trim();
      const cookie = /cloudlet_session=[\w-]{43}/.exec(shown)?.[0] ?? '';
      assert.ok(cookie, `browsers send the cookie to every port of a host: ${shown}`);
      assert.equal(await visitor.evaluate(`localStorage.getItem('cloudlet-session') === null`), true);
      const page = { 'sec-fetch-site': 'same-origin' };
      for (const token of [{}, { 'cloudlet-session': own['cloudlet-session'] }]) {
        const headers = { ...page, cookie, ...token };
        for (const path of ['/api/account', '/api/account/access-keys'])
          await anyone.refused(401, 'incomplete_session', [path, { headers }]);
        await anyone.refused(401, 'incomplete_session', ['/api/account', { method: 'DELETE', headers }]);
      }

      await visitor.goto(`${machine}/beside?${own.cookie.split('=')[1]}`);
      await visitor.goto(`${cloud.api}/`);
      await says(visitor, username);

      await visitor.goto(`${machine}/plant?${own.cookie.split('=')[1]}`);
      await visitor.goto(`${cloud.api}/`);
      await eventually('the page says what happened', () =>
        visitor.evaluate(`document.body.innerText.includes('session was replaced')`),
      );
      await signIn(visitor, username);
    } finally {
      await visitor.close();
    }
  });
}
