/** Ghost from npm on a MySQL database: its migrations, and a post written and read with its API. */
import assert from 'node:assert/strict';
import { globSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { NO_MARIADB } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { freePort } from '../harness/free-port.ts';
import { eventually } from '../harness/waiting.ts';
import { NODE_22, NpmFolder } from './npm-folder.ts';

const VERSION = '6.65.0';
const RUN_MS = 1_200_000;
const ADMIN = { email: 'ada@example.org', password: 'correct horse battery' };
const skip = globSync('build/programs/mariadb-*/usr').length > 0 ? false : NO_MARIADB;

describe('Ghost', { skip }, () => {
  let cloud: CloudProcess;
  let user: Client;
  let folder: NpmFolder;
  let program: ReturnType<NpmFolder['start']> | undefined;
  let site: string;
  let path: string;
  let cookie = '';
  let said = '';

  before(async () => {
    folder = await NpmFolder.with([NODE_22], {});
    // It contains packages that npm lacks, so it is installed where it was unpacked.
    await folder.npm(['pack', `ghost@${VERSION}`]);
    await folder.unpack(`ghost-${VERSION}.tgz`);
    await folder.npm(['install', '--omit=dev', '--omit=optional', '--legacy-peer-deps'], 'package');
    cloud = await CloudProcess.start();
    user = await new Client(cloud.api).newUser();
    const { status, body } = await user.call('/api/databases', { json: { name: 'ghost', engine: 'mysql' } });
    assert.equal(status, 201, JSON.stringify(body));
    path = `/api/databases/${body.database_id}`;
    const { host, port, database, username: name, password } = body.connection;
    const own = await freePort();
    site = `http://127.0.0.1:${own}`;
    const config = {
      url: site,
      server: { host: '127.0.0.1', port: own },
      database: { client: 'mysql', connection: { host, port, user: name, password, database } },
      mail: { transport: 'Direct', from: 'ada@example.org' },
      logging: { level: 'warn', transports: ['stdout'] },
      security: { staffDeviceVerification: false },
      privacy: { useTinfoil: true },
    };
    writeFileSync(join(folder.path, 'package/config.production.json'), JSON.stringify(config));
    const env = { NODE_ENV: 'production' };
    program = folder.start(['index.js'], env, { timeout: RUN_MS, cwd: 'package' });
    for (const stream of [program.stdout, program.stderr]) stream.on('data', (text) => (said += text));
    await eventually('Ghost is up', () => {
      assert.equal(program?.exitCode, null, said);
      return fetch(`${site}/ghost/api/admin/site/`).then(
        ({ ok }) => ok,
        () => false,
      );
    });
  });
  after(async () => {
    program?.kill('SIGKILL');
    await cloud?.stop();
    folder?.remove();
  });

  async function call(method: string, at: string, json?: unknown) {
    const headers = { 'Content-Type': 'application/json', Origin: site, Cookie: cookie };
    const answer = await fetch(`${site}/ghost/api/admin${at}`, {
      method,
      headers,
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    });
    const text = await answer.text();
    assert.ok(answer.ok, `${method} ${at}: ${answer.status} ${text}\n${said}`);
    cookie ||= answer.headers.getSetCookie().join('; ').split(';')[0] ?? '';
    return text.startsWith('{') ? JSON.parse(text) : text;
  }

  test('sets itself up, and publishes what its author writes', async () => {
    const setup = { name: 'Ada', blogTitle: 'The blog', ...ADMIN };
    await call('POST', '/authentication/setup/', { setup: [setup] });
    cookie = '';
    await call('POST', '/session/', { username: ADMIN.email, password: ADMIN.password });
    const html = '<p>Über Tee 🍵 and “quotes”</p>';
    const written = { title: 'First leaves', html, status: 'published', tags: ['green'] };
    const { posts } = await call('POST', '/posts/?source=html', { posts: [written] });
    const [post] = posts;
    const page = async (at: string) => (await fetch(site + at)).text();
    await eventually('it is published', async () => (await page('/first-leaves/')).includes('Über Tee 🍵'));
    assert.match(await page('/tag/green/'), /First leaves/);
    assert.match(await page('/rss/'), /First leaves/);
    const changed = { title: 'First green leaves', updated_at: post.updated_at };
    await call('PUT', `/posts/${post.id}/`, { posts: [changed] });
    const listed = await call('GET', '/posts/?filter=tag:green%2Bstatus:published&include=tags,authors');
    assert.equal(listed.posts[0].title, 'First green leaves');
    assert.equal(listed.posts[0].authors[0].name, 'Ada');
    const members = { members: [{ email: 'eve@example.org', name: 'Eve', labels: ['vip'] }] };
    await call('POST', '/members/', members);
    assert.equal((await call('GET', '/members/?filter=label:vip')).members.length, 1);
    const { body } = await user.call(`${path}/query`, {
      json: { statement: "SELECT title FROM posts WHERE slug = 'first-leaves'" },
    });
    assert.deepEqual(body.rows, [['First green leaves']]);
    await call('DELETE', `/posts/${post.id}/`);
    assert.equal((await fetch(`${site}/first-leaves/`)).status, 404);
  });
});
