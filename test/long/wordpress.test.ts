/** Debian's WordPress on a MySQL database, installed and used through its own pages. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { NO_MARIADB } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { freePort } from '../harness/free-port.ts';
import { eventually } from '../harness/waiting.ts';
import { cannotMakeTree, unpackTree } from './debian-tree.ts';

const PACKAGES = 'wordpress,wordpress-theme-twentytwentythree,php8.2-cli,php8.2-mysql';
const hasMariadb = globSync('build/programs/mariadb-*/usr').length > 0;
const skip = cannotMakeTree() || (hasMariadb ? false : NO_MARIADB);
const EXTENSIONS = ['mysqlnd', 'mysqli', 'tokenizer', 'ctype', 'fileinfo', 'iconv', 'phar', 'posix'];
const ADMIN = { name: 'ada', password: 'correct horse battery staple' };

function configOf({ database, username, password, host, port }: Record<string, string>): string {
  return `<?php
define('DB_NAME', '${database}');
define('DB_USER', '${username}');
define('DB_PASSWORD', '${password}');
define('DB_HOST', '${host}:${port}');
define('WP_CONTENT_DIR', '/var/lib/wordpress/wp-content');
define('WP_DEBUG', true);
define('WP_DEBUG_DISPLAY', false);
define('WP_DEBUG_LOG', '/tmp/wordpress.log');
define('DISABLE_WP_CRON', true);
define('WP_HTTP_BLOCK_EXTERNAL', true);
`;
}

describe('WordPress', { skip }, () => {
  const tree = mkdtempSync(join(tmpdir(), 'cloudlet-test-'));
  const cookies = new Map<string, string>();
  let cloud: CloudProcess;
  let user: Client;
  let path: string;
  let server: ChildProcess;
  let site: string;
  let said = '';

  before(async () => {
    unpackTree(tree, PACKAGES);
    cloud = await CloudProcess.start();
    user = await new Client(cloud.api).newUser();
    const { status, body } = await user.call('/api/databases', { json: { name: 'blog', engine: 'mysql' } });
    assert.equal(status, 201, JSON.stringify(body));
    path = `/api/databases/${body.database_id}`;
    mkdirSync(join(tree, 'etc/wordpress'), { recursive: true });
    writeFileSync(join(tree, 'etc/wordpress/config-127.0.0.1.php'), configOf(body.connection));
    const port = String(await freePort());
    site = `http://127.0.0.1:${port}`;
    const extensions = EXTENSIONS.flatMap((name) => ['-d', `extension=${name}`]);
    const words = [...extensions, '-S', `127.0.0.1:${port}`, '-t', '/usr/share/wordpress'];
    const env = { PATH: '/usr/sbin:/usr/bin:/bin', PHP_CLI_SERVER_WORKERS: '2' };
    server = spawn('/usr/sbin/chroot', [tree, '/usr/bin/php8.2', ...words], { env, detached: true });
    for (const stream of [server.stdout, server.stderr]) stream?.on('data', (text) => (said += text));
    await eventually('PHP listens', () =>
      fetch(`${site}/readme.html`).then(
        ({ ok }) => ok,
        () => false,
      ),
    );
  });
  after(async () => {
    // Its workers are separate processes.
    if (server?.pid !== undefined) process.kill(-server.pid, 'SIGKILL');
    if (server !== undefined && server.exitCode === null) await once(server, 'close');
    await cloud?.stop();
    rmSync(tree, { recursive: true, force: true });
  });

  async function shows(at: string, text: string): Promise<void> {
    assert.ok((await page(at)).includes(text), `${at} shows ${text}`);
  }

  /** A page as read by a browser that keeps cookies. `form`: the sent data. */
  async function page(at: string, form?: Record<string, string>): Promise<string> {
    const Cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const body = form && new URLSearchParams(form);
    const answer = await fetch(site + at, {
      headers: { Cookie },
      redirect: 'manual',
      ...(body && { method: 'POST', body }),
    });
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      cookies.set(name, value);
    }
    const text = await answer.text();
    assert.ok(answer.status < 400, `${at}: ${answer.status}\n${text}\n${said}`);
    const elsewhere = answer.headers.get('location');
    return elsewhere === null ? text : page(elsewhere.replace(site, ''));
  }

  async function rest(method: string, route: string, json?: object) {
    const nonce = await page('/wp-admin/admin-ajax.php?action=rest-nonce');
    const Cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = { Cookie, 'X-WP-Nonce': nonce, 'Content-Type': 'application/json' };
    const answer = await fetch(`${site}/index.php?rest_route=${route}`, {
      method,
      headers,
      ...(json && { body: JSON.stringify(json) }),
    });
    const text = await answer.text();
    assert.ok(answer.ok, `${method} ${route}: ${answer.status} ${text}`);
    return JSON.parse(text);
  }

  test('is installed by its page', async () => {
    assert.match(await page('/wp-admin/install.php?step=1'), /user_login/);
    const installed = await page('/wp-admin/install.php?step=2', {
      weblog_title: 'The blog',
      user_name: ADMIN.name,
      admin_password: ADMIN.password,
      admin_password2: ADMIN.password,
      pw_weak: '1',
      admin_email: 'ada@example.org',
      Submit: 'Install',
      language: '',
    });
    assert.match(installed, /Success!|WordPress has been installed/);
    assert.match(await page('/'), /The blog/);
    const { body: tables } = await user.call(`${path}/tables`);
    const names = tables.map(({ name }: { name: string }) => name);
    for (const name of ['wp_posts', 'wp_users', 'wp_options', 'wp_comments']) assert.ok(names.includes(name));
  });

  test('its author signs in, publishes, and readers find, comment and search', async () => {
    await page('/wp-login.php');
    await page('/wp-login.php', {
      log: ADMIN.name,
      pwd: ADMIN.password,
      testcookie: '1',
      redirect_to: `${site}/wp-admin/`,
    });
    assert.match(await page('/wp-admin/'), /Dashboard/);
    const content = '<p>Über Tee 🍵 and “quotes” — it’s all there.</p>';
    const post = await rest('POST', '/wp/v2/posts', { title: 'First leaves', content, status: 'publish' });
    const tag = await rest('POST', '/wp/v2/tags', { name: 'green' });
    await rest('POST', `/wp/v2/posts/${post.id}`, { tags: [tag.id], title: 'First green leaves' });
    const at = `/?p=${post.id}`;
    await shows(at, 'First green leaves');
    await shows(at, 'Über Tee 🍵');
    const comment = {
      post: post.id,
      content: 'I like it',
      author_name: 'eve',
      author_email: 'eve@example.org',
      status: 'approved',
    };
    await rest('POST', '/wp/v2/comments', comment);
    await shows(at, 'I like it');
    await shows('/?s=green+leaves', 'First green leaves');
    await shows('/?feed=rss2', 'First green leaves');
    const { body } = await user.call(`${path}/query`, {
      json: {
        statement:
          "SELECT COUNT(*) FROM wp_posts WHERE post_title = 'First green leaves' AND post_type = 'post'",
      },
    });
    assert.deepEqual(body.rows, [[1]]);
    await rest('DELETE', `/wp/v2/posts/${post.id}&force=true`);
    assert.ok(!(await page('/')).includes('First green leaves'));
  });
});
