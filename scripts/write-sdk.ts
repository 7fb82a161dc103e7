/**
 * Generates files of sdk/ from openapi.json: build/sdk/schema.d.ts, its types; and
 * build/sdk/operations.ts, the table of operations (operationId → method, path, parts of the input)
 * with the signature of each as a method of the client. The set-up runs it; the files are not in
 * git.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
  readonly description?: string;
  readonly format?: string;
}

interface Parameter {
  readonly $ref?: string;
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly schema: Schema;
}

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>;
}

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: Content & { readonly required?: boolean };
  readonly responses: Readonly<Record<string, Content>>;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly parameters: Readonly<Record<string, Parameter>>;
  };
}

const HEAD = '/** Made by scripts/write-sdk.ts from openapi.json. */';
const JSON_TYPE = 'application/json';
const ROOT = join(import.meta.dirname, '..');

/**
 * Every schema as a type of its name, `Calls`: the input and output of each operation, and
 * `Methods`: the client's method for each operation, which takes ids first, then the body, then the
 * query, then options.
 */
function renderTypes(document: Document): string {
  const { schemas, parameters } = document.components;
  const types = Object.entries(schemas).map(
    ([name, schema]) => `${comment(schema.description)}export type ${name} = ${typeOf(schema)};`,
  );
  const calls = operationsOf(document).map(({ operation }) => {
    const input = inputOf(operation, parameters);
    const { operationId, summary } = operation;
    return `${comment(summary)}${operationId}: { input: ${input}; result: ${resultOf(operation)} };`;
  });
  const imports = "import type { CallOptions, Pages, UploadOptions } from '../../sdk/types.ts';";
  const methods = operationsOf(document).flatMap(({ path, operation }) =>
    methodOf(path, operation, parameters),
  );
  return [
    ...[HEAD, imports, ...types],
    ...['export interface Calls {', ...calls, '}'],
    ...['export interface Methods {', ...methods, '}', ''],
  ].join('\n');
}

interface Called {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

function operationsOf({ paths }: Document): Called[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
}

/** Parameters that a list pages by; the client does so itself. */
const PAGING = ['limit', 'cursor'];
const FORM_TYPE = 'multipart/form-data';

/** The result type of a client method for an operation. */
type Gives = 'json' | 'pages' | 'text' | 'bytes' | 'socket';

function givesOf({ operationId, responses, parameters = [] }: Operation): Gives {
  const success = Object.entries(responses).find(([status]) => status.startsWith('2'))?.[1];
  if (success === undefined) return 'socket';
  const [type = ''] = Object.keys(success.content ?? {});
  if (type !== JSON_TYPE) return type.startsWith('text/') ? 'text' : 'bytes';
  const isPaged = parameters.some(
    ({ $ref }) => $ref?.endsWith('/Cursor') && operationId.match(/[lL]ist|browse/),
  );
  return isPaged ? 'pages' : 'json';
}

/** The table of operations. */
function renderOperations(document: Document): string {
  const { parameters: shared } = document.components;
  const entries = operationsOf(document).map(({ method, path, operation }) => {
    const gives = givesOf(operation);
    const content = Object.keys(operation.requestBody?.content ?? {});
    const body = content.includes(FORM_TYPE) ? 'form' : content.includes(JSON_TYPE) ? 'json' : null;
    const query = queryOf(operation, shared, gives).length > 0;
    const entry = { method, path, body, query, gives };
    return `  ${operation.operationId}: ${JSON.stringify(entry)},`;
  });
  return [
    HEAD,
    "import type { CallShape } from '../../sdk/transport.ts';",
    "import type { Calls } from './schema.d.ts';",
    'export const OPERATIONS: Readonly<Record<keyof Calls, CallShape>> = {',
    ...entries,
    '};',
    '',
  ].join('\n');
}

function queryOf(operation: Operation, shared: Document['components']['parameters'], gives: Gives) {
  return (operation.parameters ?? [])
    .map((one) => (one.$ref === undefined ? one : (shared[nameOf(one.$ref)] as Parameter)))
    .filter(
      ({ in: location, name }) => location === 'query' && !(gives === 'pages' && PAGING.includes(name)),
    );
}

/** Empty for special requests: sdk/index.ts has WebSockets. */
function methodOf(
  path: string,
  operation: Operation,
  shared: Document['components']['parameters'],
): string[] {
  const { operationId: id, summary, description = '', requestBody } = operation;
  const gives = givesOf(operation);
  if (gives === 'socket') return [];
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  const form = requestBody?.content?.[FORM_TYPE];
  const json = requestBody?.content?.[JSON_TYPE];
  const body = form ?? json;
  const query = queryOf(operation, shared, gives);
  const fields = query.map(({ name, required, schema }) => field(name, schema, required === true));
  const isQueryNeeded = query.some(({ required }) => required === true);
  const args = [
    ...names.map((name) => `${name}: string | number`),
    ...(body === undefined ? [] : [`body${requestBody?.required ? '' : '?'}: ${typeOf(body.schema)}`]),
    ...(query.length === 0 ? [] : [`query${isQueryNeeded ? '' : '?'}: { ${fields.join(' ')} }`]),
    `options?: ${form === undefined ? 'CallOptions' : 'UploadOptions'}`,
  ];
  const entry = `Calls['${id}']['result'][number]`;
  const result = {
    json: `Promise<Calls['${id}']['result']>`,
    pages: `Pages<${entry}>`,
    text: 'Promise<string>',
    bytes: 'Promise<Response>',
  }[gives];
  const words = [summary, description].filter((text) => text !== '').join('. ');
  return [`  ${comment(words)}`, `  ${id}(${args.join(', ')}): ${result};`];
}

function inputOf(operation: Operation, shared: Document['components']['parameters']): string {
  const known = (operation.parameters ?? []).map((one) =>
    one.$ref === undefined ? one : (shared[nameOf(one.$ref)] as Parameter),
  );
  const members: string[] = [];
  for (const [location, member] of [
    ['path', 'params'],
    ['query', 'query'],
  ]) {
    const own = known.filter((one) => one.in === location);
    if (own.length === 0) continue;
    const isNeeded = own.some(({ required }) => required === true);
    const fields = own.map(({ name, required, schema }) => field(name, schema, required === true));
    members.push(`${member}${isNeeded ? '' : '?'}: { ${fields.join(' ')} };`);
  }
  const { requestBody } = operation;
  const body = requestBody?.content?.[JSON_TYPE];
  if (body !== undefined) {
    members.push(`body${requestBody?.required === true ? '' : '?'}: ${typeOf(body.schema)};`);
  }
  return members.length === 0 ? 'Record<never, never>' : `{ ${members.join(' ')} }`;
}

/** `Response` for a call whose response is not JSON. */
function resultOf({ responses }: Operation): string {
  const success = Object.entries(responses).find(([status]) => status.startsWith('2'));
  const json = success?.[1].content?.[JSON_TYPE];
  return json === undefined ? 'Response' : typeOf(json.schema);
}

function typeOf(schema: Schema): string {
  if (schema.$ref !== undefined) return nameOf(schema.$ref);
  if (schema.anyOf !== undefined) return schema.anyOf.map((one) => `(${typeOf(one)})`).join(' | ');
  if ('const' in schema) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  if (Array.isArray(schema.type)) {
    return schema.type.map((type) => `(${typeOf({ ...schema, type })})`).join(' | ');
  }
  switch (schema.type) {
    case 'string':
      return schema.format === 'binary' ? 'Blob' : 'string';
    case 'integer':
    case 'number':
      return 'number';
    case 'boolean':
    case 'null':
      return String(schema.type);
    case 'array':
      return `readonly (${schema.items === undefined ? 'unknown' : typeOf(schema.items)})[]`;
    case 'object':
      return objectType(schema);
    default:
      return 'unknown';
  }
}

function objectType({ properties, required = [], additionalProperties }: Schema): string {
  if (properties === undefined) {
    const value = typeof additionalProperties === 'object' ? typeOf(additionalProperties) : 'unknown';
    return `{ readonly [name: string]: ${value} }`;
  }
  const fields = Object.entries(properties).map(
    ([name, schema]) =>
      `${comment(schema.description)}readonly ${field(name, schema, required.includes(name))}`,
  );
  return `{ ${fields.join(' ')} }`;
}

function field(name: string, schema: Schema, isNeeded: boolean): string {
  return `${/^\w+$/.test(name) ? name : JSON.stringify(name)}${isNeeded ? '' : '?'}: ${typeOf(schema)};`;
}

function nameOf(ref: string): string {
  return ref.slice(ref.lastIndexOf('/') + 1);
}

function comment(text: string | undefined): string {
  return text === undefined ? '' : `/** ${text.replaceAll('*/', '* /')} */ `;
}

/** Writes both files; it needs nothing but openapi.json. */
export function writeSdkTypes(): void {
  const document = JSON.parse(readFileSync(join(ROOT, 'openapi.json'), 'utf8')) as Document;
  mkdirSync(join(ROOT, 'build/sdk'), { recursive: true });
  replaceFile(join(ROOT, 'build/sdk/schema.d.ts'), renderTypes(document));
  replaceFile(join(ROOT, 'build/sdk/operations.ts'), renderOperations(document));
}

/** The builds of console and client run at once: neither may read what the other has written half of. */
function replaceFile(path: string, text: string): void {
  const own = `${path}.${process.pid}`;
  writeFileSync(own, text);
  renameSync(own, path);
}

if (import.meta.main) writeSdkTypes();
