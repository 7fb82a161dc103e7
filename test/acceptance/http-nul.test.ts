/** U+0000 and lone surrogates occur in no stored text: each member is refused with them, by name. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { CheckedClient, type Entry } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';

const NUL = 'a\0b';
/** The first half of a surrogate pair. */
const HALF = 'a\ud800';

/** JSON Schema, as far as this test walks it. */
interface Schema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly anyOf?: readonly Schema[];
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly schema: Schema;
}

/** Each text of the schema: its path, and a value that has `text` there. */
function textsOf(schema: Schema, text = NUL): { path: string[]; value: unknown }[] {
  const { type, enum: choices, items, properties, patternProperties, anyOf } = schema;
  if (anyOf !== undefined) return anyOf.flatMap((each) => textsOf(each, text));
  if (type === 'string' || typeof choices?.[0] === 'string') return [{ path: [], value: text }];
  const within = (name: string, part: Schema, wrap: (value: unknown) => unknown) =>
    textsOf(part, text).map(({ path, value }) => ({ path: [name, ...path], value: wrap(value) }));
  if (items !== undefined) return within('0', items, (value) => [value]);
  const members = Object.entries(properties ?? {}).flatMap(([name, part]) =>
    within(name, part, (value) => ({ [name]: value })),
  );
  if (patternProperties === undefined && (properties !== undefined || type !== 'object')) return members;
  // An object with members of any name.
  return [
    ...members,
    { path: ['free'], value: { free: text } },
    { path: ['deep', 'list', '1'], value: { deep: { list: [1, text] } } },
    { path: [text.replaceAll('\0', '\\0').toWellFormed()], value: { [text]: 'x' } },
  ];
}

const cloud = await CloudProcess.start({ env: { CLOUDLET_RATE_REQUESTS: '1000000' } });
after(() => cloud.stop());
const anyone = await CheckedClient.open(cloud.api);
const { api_key: key } = await anyone.register();

/** Sockets are opened in another way. */
const entries = anyone.declaration.operations.filter(({ operation }) => !('x-websocket' in operation));

function clientFor({ operation }: Entry): CheckedClient {
  const { 'x-permission': permission } = operation;
  return permission === 'public'
    ? anyone.as(undefined)
    : anyone.as(permission.startsWith('admin') ? ADMIN_KEY : key);
}

const FORM = 'multipart/form-data';
const OWN_TEXTS: ReadonlySet<string> = new Set([
  'queryDatabase',
  'explainDatabaseQuery',
  'readDatabaseRows',
  'changeDatabaseRows',
]);
const takesForm = ({ operation }: Entry) => operation.requestBody?.content[FORM] !== undefined;

function formWith(fields: Readonly<Record<string, string>> = {}): FormData {
  const form = new FormData();
  form.set('file', new Blob(['x']), 'x.txt');
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  return form;
}

async function assertRefused(entry: Entry, url: string, { field, json }: { field: string; json?: unknown }) {
  const { method } = entry;
  const body = takesForm(entry) ? formWith() : undefined;
  const { status, body: problem } = await clientFor(entry).call(url, { method, json, body });
  const where = `${method} ${url} ${field}: ${JSON.stringify(problem)}`;
  assert.equal(status, 400, where);
  const fields = problem.errors?.map((error: { field: string }) => error.field);
  assert.ok(fields?.includes(field), where);
}

const plain = (path: string) => path.replaceAll(/\{\w+\}/g, '1');

test('in a path', async () => {
  let count = 0;
  for (const entry of entries) {
    for (const [placeholder] of entry.path.matchAll(/\{\w+\}/g)) {
      const field = placeholder.slice(1, -1);
      await assertRefused(entry, plain(entry.path.replace(placeholder, 'a%00b')), { field });
      count++;
    }
  }
  assert.ok(count > 40, `${count} placeholders`);
});

test('in a query', async () => {
  let count = 0;
  for (const entry of entries) {
    const parameters = (entry.operation.parameters ?? []) as readonly Parameter[];
    for (const { name, schema } of parameters.filter((each) => each.in === 'query')) {
      if (textsOf(schema).length === 0) continue;
      await assertRefused(entry, `${plain(entry.path)}?${name}=a%00b`, { field: name });
      count++;
    }
  }
  assert.ok(count > 10, `${count} parameters`);
});

test('in a body', async () => {
  let count = 0;
  for (const entry of entries) {
    const { requestBody, operationId } = entry.operation;
    const schema: Schema | undefined = requestBody?.content['application/json']?.schema;
    // Statements, their parameters and rows are the user's own.
    if (schema === undefined || OWN_TEXTS.has(operationId)) continue;
    for (const { path, value } of [...textsOf(schema), ...textsOf(schema, HALF)]) {
      await assertRefused(entry, plain(entry.path), { field: path.join('.'), json: value });
      count++;
    }
  }
  assert.ok(count > 80, `${count} members`);
});

test('in a form', async () => {
  await anyone.as(key).expect(201, '/api/buckets', { json: { name: 'forms' } });
  let count = 0;
  for (const entry of entries) {
    const schema: Schema | undefined = entry.operation.requestBody?.content[FORM]?.schema;
    const fields = Object.keys(schema?.properties ?? {}).filter((name) => name !== 'file');
    for (const name of fields) {
      const body = formWith({ [name]: name === 'metadata' ? JSON.stringify({ deep: [NUL] }) : NUL });
      const url = plain(entry.path.replace('{name}', 'forms'));
      const { status, body: problem } = await clientFor(entry).call(url, { method: 'POST', body });
      assert.equal(status, 400, `${url} ${name}: ${JSON.stringify(problem)}`);
      assert.equal(problem.errors?.[0].field, name, JSON.stringify(problem));
      count++;
    }
  }
  assert.ok(count >= 4, `${count} fields`);
});
