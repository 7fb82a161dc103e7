import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { declaredRoutes } from '../../cloud/edges.ts';
import { ERRORS, type ErrorCode } from '../../platform/errors.ts';
import { VERSION } from '../../platform/version.ts';
import type { Route } from '../route.ts';
import { errorsOf, openApi, renderOpenApi } from './openapi.ts';

const routes = declaredRoutes();
const document = openApi(routes, { version: VERSION });
/** As seen by a reader of the file: plain JSON. */
const json = JSON.parse(renderOpenApi(document));

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly security?: readonly unknown[];
  readonly 'x-permission': string;
  readonly parameters: readonly { name: string; in: string; required?: boolean; schema: unknown }[];
  readonly requestBody?: { content: Record<string, { schema: unknown }> };
  readonly responses: Record<string, { description: string; content: Record<string, { schema: unknown }> }>;
}

/** The same without references. */
const resolved = JSON.parse(JSON.stringify(json), (_name, value) => {
  if (typeof value?.$ref !== 'string') return value;
  const { $ref, ...rest } = value;
  return { ...(resolve($ref) as object), ...rest };
});

const operations = Object.entries(resolved.paths as Record<string, Record<string, Operation>>).flatMap(
  ([path, item]) => Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
);

/** The codes that the operation declares with this status. */
function codesOf({ responses }: Operation, status: number): string[] {
  const codes = [responses[status], responses.default].flatMap((each) => each?.description.split(', ') ?? []);
  return codes.filter((code) => ERRORS[code as keyof typeof ERRORS]?.http === status);
}

/** Every object in the document, of any kind. */
function* nodes(value: unknown): Generator<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield value as Record<string, unknown>;
  for (const child of Object.values(value)) yield* nodes(child);
}

function resolve(pointer: string): unknown {
  const steps = pointer.slice(2).split('/');
  return steps.reduce<unknown>((node, step) => (node as Record<string, unknown> | undefined)?.[step], json);
}

describe('openapi.json', () => {
  test('the committed file is what the routes say', () => {
    const committed = readFileSync(new URL('../../../openapi.json', import.meta.url), 'utf8');
    assert.ok(
      committed === renderOpenApi(document),
      'openapi.json is not up to date: run node scripts/write-openapi.ts and commit it',
    );
  });

  test('has one operation for each declared route', () => {
    assert.ok(routes.length > 20, 'the routes are there');
    assert.equal(operations.length, routes.length);
  });

  test('is OpenAPI 3.1 in its outline', () => {
    assert.match(json.openapi, /^3\.1\.\d+$/);
    for (const member of ['title', 'version', 'description'])
      assert.equal(typeof json.info[member], 'string');
    const tags = json.tags.map(({ name }: { name: string }) => name);
    assert.equal(new Set(tags).size, tags.length);
    for (const requirement of json.security)
      for (const scheme of Object.keys(requirement)) assert.ok(json.components.securitySchemes[scheme]);
    for (const { path, method, operation } of operations) {
      assert.match(path, /^\/[^?#\s]*$/);
      assert.ok(['get', 'post', 'patch', 'delete'].includes(method), `${method} ${path}`);
      for (const tag of operation.tags) assert.ok(tags.includes(tag), `${path}: tag ${tag}`);
      for (const [status, { description, content }] of Object.entries(operation.responses)) {
        assert.match(status, /^(?:101|[2-5]\d\d|default)$/);
        assert.notEqual(description, '');
        for (const media of Object.values(content)) assert.equal(typeof media.schema, 'object');
      }
      const successes = Object.keys(operation.responses).filter((status) => /^[12]/.test(status));
      assert.ok(successes.length > 0, `${path} never succeeds`);
    }
  });

  test('every $ref points to something', () => {
    const targets = [...nodes(json)].flatMap(({ $ref }) => (typeof $ref === 'string' ? [$ref] : []));
    assert.ok(targets.length > 0);
    for (const target of targets) assert.equal(typeof resolve(target), 'object', target);
  });

  test('every shape is a schema with a name', () => {
    const named = new Set<unknown>(Object.values(json.components.schemas));
    const shapes = [...nodes(json)].filter((node) => Object.keys(node.properties ?? {}).length > 0);
    assert.ok(shapes.length > 100);
    assert.deepEqual(
      shapes.filter((shape) => !named.has(shape)),
      [],
      'make it a namedObject()',
    );
    for (const name of Object.keys(json.components.schemas)) assert.match(name, /^[A-Z][A-Za-z0-9]+$/);
  });

  test('a member that has a default may be left out, for generators of types too', () => {
    const { schemas } = document.components as { schemas: Record<string, { properties?: object }> };
    const members = Object.values(schemas).flatMap(({ properties = {} }) => Object.values(properties));
    assert.ok(members.some(({ description }) => /\. Default: tiny$/.test(description)));
    assert.deepEqual(
      members.filter((member) => 'default' in member),
      [],
    );
  });

  test('what only we know is not shown', () => {
    assert.doesNotMatch(renderOpenApi(document), /"(?:\$id|~[a-z]+)":/);
  });

  test('one name cannot stand for two shapes', () => {
    const route = (name: string, members: object) =>
      ({ ...routes[0], path: `/${name}`, name, responses: { 200: { $id: 'Thing', ...members } } }) as Route;
    const both = [route('one', { type: 'string' }), route('two', { type: 'integer' })];
    assert.throws(() => openApi(both, { version: '1' }), /Two schemas are called Thing/);
    const [path = {}] = Object.values(openApi(both.slice(0, 1), { version: '1' }).paths);
    assert.match(JSON.stringify(path), /"\$ref":"#\/components\/schemas\/Thing"/);
  });

  test('path parameters and the braces of the path are the same', () => {
    for (const { path, operation } of operations) {
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const declared = operation.parameters.filter((parameter) => parameter.in === 'path');
      assert.deepEqual(declared.map(({ name }) => name).sort(), named.sort(), path);
      assert.ok(declared.every(({ required }) => required));
    }
  });
});

describe('every route', () => {
  test('has its own name', () => {
    const names = routes.map(({ name }) => name);
    assert.deepEqual([...new Set(names)], names);
    for (const name of names) assert.match(name, /^[a-z][A-Za-z0-9]+$/);
  });

  test('has a method and path of its own', () => {
    const operations = routes.map(({ method, path }) => `${method} ${path.replace(/\{\w+\}/g, '{}')}`);
    assert.deepEqual([...new Set(operations)], operations);
  });

  test('has a summary and a permission', () => {
    for (const { path, operation } of operations) {
      assert.match(operation.summary, /^[A-Z].{3,}[^.]$/, path);
      assert.match(
        operation['x-permission'],
        /^(public|authenticated|everything|admin|[a-z]+:(read|write|append|admin|connect))$/,
        path,
      );
      const isPublic = operation['x-permission'] === 'public';
      assert.deepEqual(operation.security, isPublic ? [] : undefined, path);
    }
  });

  test('says 202 only of an operation', () => {
    for (const { responses, name } of routes) assert.ok(!(202 in responses), name);
  });

  test('names its errors, each of which exists', () => {
    for (const route of routes) {
      const named = errorsOf(route);
      assert.ok(named.length > 0);
      for (const code of named) assert.ok(code in ERRORS, `${route.name}: ${code}`);
    }
    for (const { path, operation } of operations) {
      for (const [status, { description }] of Object.entries(operation.responses)) {
        if (/^[12]/.test(status)) continue;
        for (const code of description.split(', ')) {
          const { http } = ERRORS[code as ErrorCode] ?? {};
          assert.ok(status === 'default' ? http : http === Number(status), `${path} ${status}: ${code}`);
        }
      }
    }
  });

  test('has all its errors in the document, and no others', () => {
    for (const route of routes) {
      const { operation } = operations.find((each) => each.operation.operationId === route.name) ?? {};
      const failures = Object.entries(operation?.responses ?? {}).filter(([status]) => !/^[12]/.test(status));
      const named = failures.flatMap(([, { description }]) => description.split(', '));
      assert.deepEqual(named.sort(), errorsOf(route), route.name);
    }
  });

  test('that needs a key says how it refuses those without the right one', () => {
    for (const { path, operation } of operations) {
      if (operation['x-permission'] === 'public') continue;
      assert.ok(codesOf(operation, 401).includes('missing_api_key'), path);
      if (operation['x-permission'] === 'authenticated') continue;
      const refusal = /^admin/.test(operation['x-permission']) ? 'admin_required' : 'scope_required';
      assert.ok(codesOf(operation, 403).includes(refusal), path);
    }
  });
});
