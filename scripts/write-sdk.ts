/**
 * Writes build/sdk/schema.d.ts: the types of every call in openapi.json, which sdk/ is checked against. The
 * console's build and the type check run it; the file is not in git.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
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

const JSON_TYPE = 'application/json';
const ROOT = join(import.meta.dirname, '..');

/** Every schema as a type of its name, and `Calls`: what each call takes and gives. */
function renderTypes(document: Document): string {
  const { schemas, parameters } = document.components;
  const types = Object.entries(schemas).map(
    ([name, schema]) => `${comment(schema.description)}export type ${name} = ${typeOf(schema)};`,
  );
  const calls = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => {
      const input = inputOf(operation, parameters);
      const call = `'${method.toUpperCase()} ${path}'`;
      return `${comment(operation.summary)}${call}: { input: ${input}; result: ${resultOf(operation)} };`;
    }),
  );
  const head = '/** Made by scripts/write-sdk.ts from openapi.json. */';
  return [head, ...types, 'export interface Calls {', ...calls, '}', ''].join('\n');
}

function inputOf(operation: Operation, shared: Document['components']['parameters']): string {
  const known = (operation.parameters ?? []).map((one) =>
    one.$ref === undefined ? one : (shared[nameOf(one.$ref)] as Parameter),
  );
  const members: string[] = [];
  for (const [place, member] of [
    ['path', 'params'],
    ['query', 'query'],
  ]) {
    const own = known.filter((one) => one.in === place);
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

/** `Response` for a call that does not answer with JSON. */
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

/** Writes the file; it needs nothing but openapi.json. */
export function writeSdkTypes(): void {
  const document = JSON.parse(readFileSync(join(ROOT, 'openapi.json'), 'utf8')) as Document;
  mkdirSync(join(ROOT, 'build/sdk'), { recursive: true });
  writeFileSync(join(ROOT, 'build/sdk/schema.d.ts'), renderTypes(document));
}

if (import.meta.main) writeSdkTypes();
