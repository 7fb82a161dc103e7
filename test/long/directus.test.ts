/**
 * Directus from npm on PostgreSQL and MySQL databases: its migrations, and collections created with its API.
 */
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { NO_MARIADB, NO_POSTGRESQL } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { freePort } from '../harness/free-port.ts';
import { eventually } from '../harness/waiting.ts';
import { NODE_22, NpmFolder } from './npm-folder.ts';

const PACKAGES = ['directus@12.4.1', NODE_22];
/** The first version with programs for this Node in its package, and the last version of its app at npm. */
const OVERRIDES = { 'isolated-vm': '6.1.2', '@directus/app': '18.0.0' };
const BOOTSTRAP_MS = 600_000;
const ADMIN = { email: 'ada@example.org', password: 'correct horse' };
const ENGINES = {
  postgresql: { client: 'pg', programs: 'postgresql', why: NO_POSTGRESQL },
  mysql: { client: 'mysql', programs: 'mariadb', why: NO_MARIADB },
} as const;

describe('Directus', () => {
  let cloud: CloudProcess;
  let user: Client;
  let folder: NpmFolder;
  before(async () => {
    cloud = await CloudProcess.start();
    user = await new Client(cloud.api).newUser();
    folder = await NpmFolder.with(PACKAGES, {}, { overrides: OVERRIDES });
  });
  after(async () => {
    folder?.remove();
    await cloud?.stop();
  });

  async function environmentFor(engine: keyof typeof ENGINES): Promise<Record<string, string>> {
    const { status, body } = await user.call('/api/databases', { json: { name: engine, engine } });
    assert.equal(status, 201, JSON.stringify(body));
    const { host, port, database, username, password } = body.connection;
    return {
      DB_CLIENT: ENGINES[engine].client,
      DB_HOST: host,
      DB_PORT: String(port),
      DB_DATABASE: database,
      DB_USER: username,
      DB_PASSWORD: password,
      HOST: '127.0.0.1',
      PORT: String(await freePort()),
      KEY: 'key',
      SECRET: 'a secret of this test, and of no other',
      ADMIN_EMAIL: ADMIN.email,
      ADMIN_PASSWORD: ADMIN.password,
      TELEMETRY: 'false',
      SERVE_APP: 'false',
      LOG_LEVEL: 'warn',
      // It refuses calls on a busy host.
      PRESSURE_LIMITER_ENABLED: 'false',
      EXTENSIONS_PATH: './extensions',
    };
  }

  for (const [engine, { programs, why }] of Object.entries(ENGINES)) {
    const skip = globSync(`build/programs/${programs}-*/usr`).length > 0 ? false : why;
    test(`on ${engine}`, { skip }, async (t) => {
      const env = await environmentFor(engine as keyof typeof ENGINES);
      const cli = 'node_modules/directus/cli.js';
      await folder.run([cli, 'bootstrap'], env, { timeout: BOOTSTRAP_MS });
      const program = folder.start([cli, 'start'], env, { timeout: BOOTSTRAP_MS });
      t.after(() => program.kill('SIGKILL'));
      let said = '';
      for (const stream of [program.stdout, program.stderr]) stream.on('data', (text) => (said += text));
      const base = `http://127.0.0.1:${env.PORT}`;
      await eventually('Directus is up', () => {
        assert.equal(program.exitCode, null, said);
        return fetch(`${base}/server/ping`).then(
          ({ ok }) => ok,
          () => false,
        );
      });
      await useItsApi(base);
    });
  }
});

/** Creates two collections with a relation, and items in them; reads, changes and removes these. */
async function useItsApi(base: string): Promise<void> {
  let token = '';
  const call = async (method: string, path: string, json?: unknown) => {
    const answer = await fetch(base + path, {
      method,
      headers: { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    });
    const text = await answer.text();
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
    return text === '' ? null : JSON.parse(text).data;
  };
  token = (await call('POST', '/auth/login', ADMIN)).access_token;
  const id = { field: 'id', type: 'integer', schema: { is_primary_key: true, has_auto_increment: true } };
  const field = (name: string, type: string, more = {}) => ({ field: name, type, schema: more, meta: {} });
  const collection = (name: string, ...fields: object[]) =>
    call('POST', '/collections', { collection: name, schema: {}, meta: {}, fields: [id, ...fields] });
  await collection('authors', field('name', 'string', { is_unique: true }));
  const price = field('price', 'decimal', { numeric_precision: 10, numeric_scale: 2 });
  await collection('books', field('title', 'string'), price, field('more', 'json'), field('at', 'timestamp'));
  await call('POST', '/fields/books', field('author', 'integer'));
  const to = { related_collection: 'authors', schema: { on_delete: 'SET NULL' } };
  await call('POST', '/relations', { collection: 'books', field: 'author', ...to });

  const ada = await call('POST', '/items/authors', { name: 'Ada ☕' });
  const book = (title: string, cents: string) => ({
    title,
    price: cents,
    author: ada.id,
    more: { a: [1, title] },
  });
  await call('POST', '/items/books', [book('Tea', '12.50'), book('Coffee', '7.25'), book('Té', '1.10')]);
  const query =
    'filter[author][name][_starts_with]=Ada&filter[price][_gt]=5&sort=-price&fields=*,author.name';
  const found = await call('GET', `/items/books?${query}`);
  assert.deepEqual(
    found.map((each: Record<string, unknown>) => [each.title, Number(each.price), each.author, each.more]),
    [
      ['Tea', 12.5, { name: 'Ada ☕' }, { a: [1, 'Tea'] }],
      ['Coffee', 7.25, { name: 'Ada ☕' }, { a: [1, 'Coffee'] }],
    ],
  );
  const [sums] = await call('GET', '/items/books?aggregate[sum]=price&aggregate[count]=*&groupBy[]=author');
  assert.deepEqual([Number(sums.sum.price), Number(sums.count), sums.author], [20.85, 3, ada.id]);
  assert.equal((await call('GET', '/items/books?search=coff')).length, 1);
  await call('PATCH', `/items/books/${found[1].id}`, { title: 'Cocoa', at: '2026-11-26T12:00:00Z' });
  assert.equal((await call('GET', `/items/books/${found[1].id}`)).title, 'Cocoa');
  await call('DELETE', `/items/authors/${ada.id}`);
  const left = await call('GET', '/items/books?filter[author][_null]=true&fields=id');
  assert.equal(left.length, 3);
  await call('DELETE', '/collections/books');
  const snapshot = await call('GET', '/schema/snapshot');
  assert.deepEqual(
    snapshot.collections.map((each: { collection: string }) => each.collection),
    ['authors'],
  );
}
