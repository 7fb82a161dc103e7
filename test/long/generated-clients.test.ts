/**
 * The first hour of other developers, with clients that common generators create from the served document.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { CloudProcess } from '../harness/cloud-process.ts';
import { NpmFolder } from './npm-folder.ts';

/**
 * openapi-generator itself is a Java program that neither npm nor Debian has: its npm package downloads it
 * from elsewhere. Hey API's generator creates a client of the same kind, functions over fetch.
 */
const PACKAGES = {
  types: ['openapi-typescript@7.13.0', 'openapi-fetch@0.17.0', 'typescript@5.9.3'],
  functions: ['@hey-api/openapi-ts@0.99.0', 'typescript@5.9.3'],
  collection: ['openapi-to-postmanv2@6.3.3', 'newman@6.2.2'],
};
const COMPILER = fileURLToPath(new URL('../../node_modules/.bin/tsc', import.meta.url));
const STRICT =
  '--noEmit --strict --noUncheckedIndexedAccess --module nodenext --target es2024 --lib es2024,esnext,dom,dom.iterable ' +
  '--allowImportingTsExtensions --types node';
const TYPES = fileURLToPath(new URL('../../node_modules/@types', import.meta.url));

let cloud: CloudProcess;
before(async () => {
  cloud = await CloudProcess.start();
});
after(() => cloud?.stop());

/** A folder with the generator and the served document. */
async function folderWith(packages: readonly string[], files: Readonly<Record<string, string>>) {
  const document = await (await fetch(`${cloud.api}/api/openapi.json`)).text();
  return NpmFolder.with(packages, { 'openapi.json': document, ...files });
}

/** Prints nothing if the program is correct. */
async function compiled(folder: NpmFolder): Promise<string> {
  const words = [...STRICT.split(' '), '--typeRoots', TYPES, 'program.ts'];
  const tsc = spawn(COMPILER, words, { cwd: folder.path });
  const [out] = await Promise.all([text(tsc.stdout), once(tsc, 'close')]);
  return out;
}

const HEAD =
  "const baseUrl: string = process.env['CLOUD'] ?? '';\nconst name: string = process.env['NAME'] ?? '';";
const ACCOUNT = "{ username: name, email: name + '@example.org', password: 'correct horse battery' }";
const RESULT = 'console.log(JSON.stringify({ vmId, state, rows, buckets, refused }));';

const BY_TYPES = `
import createClient from 'openapi-fetch';
import type { paths } from './types.ts';
${HEAD}
const anyone = createClient<paths>({ baseUrl });
const { data: account, error } = await anyone.POST('/api/register', { body: ${ACCOUNT} });
if (error) throw error;
const cloud = createClient<paths>({ baseUrl, headers: { 'x-api-key': account.api_key ?? '' } });
await cloud.POST('/api/buckets', { body: { name: 'photos' } });
const buckets = ((await cloud.GET('/api/buckets')).data ?? []).map((bucket) => bucket.name);
const made = await cloud.POST('/api/vms', { body: { name: 'web', instance_type: 't2.micro' } });
if (made.error) throw made.error;
const vmId: string = made.data.vm_id;
const read = await cloud.GET('/api/vms/{vm_id}', { params: { path: { vm_id: vmId } } });
const state: string | undefined = read.data?.state;
const { data: database } = await cloud.POST('/api/databases', { body: { name: 'shop', engine: 'sqlite' } });
const path = { database_id: database?.database_id ?? '' };
const answer = await cloud.POST('/api/databases/{database_id}/query', { params: { path }, body: { statement: 'SELECT 40 + 2' } });
const rows: unknown = answer.data?.rows;
const missing = await cloud.GET('/api/buckets/{name}', { params: { path: { name: 'missing' } } });
const refused: string | undefined = missing.error?.code;
${RESULT}
`;

const BY_FUNCTIONS = `
import { client } from './made/client.gen.ts';
import * as cloud from './made/sdk.gen.ts';
${HEAD}
client.setConfig({ baseUrl });
const { data: account } = await cloud.register({ body: ${ACCOUNT}, throwOnError: true });
client.setConfig({ baseUrl, auth: account.api_key ?? '' });
await cloud.createBucket({ body: { name: 'photos' }, throwOnError: true });
const buckets = ((await cloud.listBuckets()).data ?? []).map((bucket) => bucket.name);
const { data } = await cloud.createVm({ body: { name: 'web', instance_type: 't2.micro' }, throwOnError: true });
const vmId: string = data.vm_id;
const state: string | undefined = (await cloud.getVm({ path: { vm_id: vmId } })).data?.state;
const file = new File(['hello'], 'note.txt', { type: 'text/plain' });
await cloud.uploadObject({ path: { name: 'photos' }, body: { file }, throwOnError: true });
const { data: database } = await cloud.createDatabase({ body: { name: 'shop', engine: 'sqlite' }, throwOnError: true });
const path = { database_id: database.database_id };
const rows: unknown = (await cloud.queryDatabase({ path, body: { statement: 'SELECT 40 + 2' } })).data?.rows;
const { error } = await cloud.getBucket({ path: { name: 'missing' } });
const refused: string | undefined = error?.code;
${RESULT}
`;

async function firstHour(folder: NpmFolder, name: string): Promise<void> {
  assert.equal(await compiled(folder), '');
  const out = await folder.run(['program.ts'], { CLOUD: cloud.api, NAME: name });
  const { vmId, ...rest } = JSON.parse(out);
  assert.match(vmId, /^vm-/);
  assert.deepEqual(rest, {
    state: 'created',
    rows: [[42]],
    buckets: ['photos'],
    refused: 'bucket_not_found',
  });
}

describe('a client by', () => {
  test('openapi-typescript and openapi-fetch compiles strictly and does the first hour', async (t) => {
    const folder = await folderWith(PACKAGES.types, { 'program.ts': BY_TYPES });
    t.after(() => folder.remove());
    await folder.run(['node_modules/openapi-typescript/bin/cli.js', 'openapi.json', '-o', 'types.ts'], {});
    await firstHour(folder, 'types');
    // The compiler detects the mistake: this is not a member.
    writeFileSync(join(folder.path, 'program.ts'), BY_TYPES.replace('.data.vm_id', '.data.vmid'));
    assert.match(await compiled(folder), /vmid/);
  });

  test("Hey API's generator compiles strictly and does the first hour", async (t) => {
    const config = {
      input: 'openapi.json',
      output: { path: 'made', module: { extension: '.ts' } },
      plugins: ['@hey-api/client-fetch', '@hey-api/sdk', '@hey-api/typescript'],
    };
    const folder = await folderWith(PACKAGES.functions, {
      'program.ts': BY_FUNCTIONS,
      'openapi-ts.config.mjs': `export default ${JSON.stringify(config)};`,
    });
    t.after(() => folder.remove());
    await folder.run(['node_modules/@hey-api/openapi-ts/bin/run.js'], { CI: 'true' });
    await firstHour(folder, 'functions');
  });
});

interface Item {
  readonly name: string;
  readonly item?: readonly Item[];
  readonly request?: {
    readonly method: string;
    readonly url: { readonly path: readonly string[]; variable: { key: string; value: string }[] };
  };
}

const flat = (items: readonly Item[]): Item[] =>
  items.flatMap((each) => (each.item ? flat(each.item) : [each]));

test('a collection that is imported from it sends its examples as they are', async (t) => {
  const folder = await folderWith(PACKAGES.collection, {});
  t.after(() => folder.remove());
  const load = createRequire(join(folder.path, 'package.json'));
  const data = await (await fetch(`${cloud.api}/api/openapi.json`)).text();
  // Settings of the import in Postman: without them it sends `<string>`, also as Idempotency-Key.
  const options = { requestParametersResolution: 'Example', enableOptionalParameters: false };
  const { output } = await new Promise<{ output: [{ data: { item: Item[]; variable: object[] } }] }>(
    (resolve, reject) =>
      load('openapi-to-postmanv2').convert(
        { type: 'string', data },
        options,
        (error: unknown, made: never) => (error ? reject(error) : resolve(made)),
      ),
  );
  const [{ data: collection }] = output;
  const calls = flat(collection.item);
  const wanted = (call: string, variables: Readonly<Record<string, string>> = {}) => {
    const found = calls.find(({ request }) => `${request?.method} ${request?.url.path.join('/')}` === call);
    assert.ok(found?.request, call);
    for (const each of found.request.url.variable) each.value = variables[each.key] ?? each.value;
    return found;
  };
  const name = { name: 'photos' };
  const item = [
    wanted('GET api/account'),
    wanted('GET api/instance-types'),
    wanted('POST api/buckets'),
    wanted('GET api/buckets/:name', name),
    wanted('GET api/buckets/:name/files', name),
    wanted('POST api/databases'),
    wanted('GET api/databases'),
    wanted('POST api/vms'),
    wanted('GET api/vms'),
    wanted('POST api/account/access-keys'),
    wanted('DELETE api/buckets/:name', name),
  ];
  const account = { username: 'runner', email: 'runner@example.org', password: 'correct horse battery' };
  const registered = await fetch(`${cloud.api}/api/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(account),
  });
  const { api_key: key } = (await registered.json()) as { api_key: string };
  const envVar = [{ key: 'apiKey', value: key }];
  const summary = await new Promise<{ run: { executions: Execution[]; failures: unknown[] } }>(
    (resolve, reject) =>
      load('newman').run({ collection: { ...collection, item }, envVar }, (error: unknown, done: never) =>
        error ? reject(error) : resolve(done),
      ),
  );
  assert.deepEqual(summary.run.failures, []);
  assert.deepEqual(
    summary.run.executions.map(({ item: { name: call }, response }) => [call, response?.code]),
    item.map((each) => [each.name, each.request?.method === 'POST' ? 201 : 200]),
  );
});

interface Execution {
  readonly item: { readonly name: string };
  readonly response?: { readonly code: number };
}
