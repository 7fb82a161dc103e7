/** A Client that checks every answer against the cloud's own openapi.json, including background calls. */
import assert from 'node:assert/strict';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/schema';
import { type Answer, type Call, Client } from './client.ts';

interface Declared {
  readonly description: string;
  readonly content: Readonly<Record<string, { schema: TSchema }>>;
}

export interface Operation {
  readonly operationId: string;
  readonly 'x-permission': string;
  readonly parameters: readonly { name: string; in: string; required?: boolean }[];
  readonly requestBody?: { content: Readonly<Record<string, { schema: TSchema }>> };
  readonly responses: Readonly<Record<string, Declared>>;
}

export interface Entry {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

/** Sent by the edge before any operation is known or entered, so no operation lists them. */
const EDGE_CODES = new Set(['bad_http', 'headers_too_large', 'request_timeout', 'overloaded']);

/** Details of Cloudlet itself that no problem may reveal. */
const INNARDS = /\.ts\b|node_modules|\\n +at |SQLITE|SELECT /;

/** The content of a cloud's openapi.json, with its schemas compiled once. */
class Declaration {
  readonly operations: readonly Entry[];
  readonly #problem: ReturnType<typeof Compile>;
  readonly #compiled = new Map<TSchema, ReturnType<typeof Compile>>();

  // biome-ignore lint/suspicious/noExplicitAny: a document read from outside
  constructor(shown: any) {
    const document = withoutReferences(shown);
    const paths = document.paths as Record<string, Record<string, Operation>>;
    this.operations = Object.entries(paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
    );
    this.#problem = Compile(document.components.schemas.Problem);
  }

  /** The operation of a request, if any; fixed paths have priority over `{}`. */
  find(method: string, url: string): Entry | undefined {
    const path = url.split('?', 1)[0] ?? '';
    return this.operations
      .filter((entry) => entry.method === (method === 'HEAD' ? 'GET' : method) && matches(entry.path, path))
      .sort((a, b) => a.path.split('{').length - b.path.split('{').length)[0];
  }

  /** Fails unless the operation declares this status, code and shape. */
  check(method: string, url: string, { status, headers, body }: Answer): void {
    const where = `${method} ${url} → ${status}`;
    const entry = this.find(method, url);
    if (status >= 400) {
      this.checkProblem(where, { status, headers, body });
      if (entry === undefined || EDGE_CODES.has(body.code)) return;
      const { [status]: own, default: common } = entry.operation.responses;
      const codes = [own, common].flatMap((declared) => declared?.description.split(', ') ?? []);
      assert.ok(codes.includes(body.code), `${where}: ${body.code} is not declared`);
      return;
    }
    assert.ok(entry, `${where}: no such operation is declared`);
    const [media = '', declared] = Object.entries(entry.operation.responses[status]?.content ?? {})[0] ?? [];
    assert.ok(declared, `${where}: the status is not declared`);
    if (media !== 'application/json') return;
    assert.match(headers.get('content-type') ?? '', /^application\/json; charset=utf-8$/, where);
    this.#demand(this.#validator(declared.schema), body, where);
  }

  /** Fails unless it is problem details according to contract §2. */
  checkProblem(where: string, { status, headers, body }: Answer): void {
    assert.match(headers.get('content-type') ?? '', /^application\/problem\+json/, `${where}: ${body}`);
    this.#demand(this.#problem, body, where);
    assert.equal(body.status, status, where);
    assert.equal(body.error, body.detail, where);
    assert.equal(body.request_id, headers.get('x-request-id'), where);
    // The engine's message about a tenant's statement may contain the tenant's own text.
    const ours = body.code === 'query_failed' ? /\.ts\b|node_modules|\\n +at / : INNARDS;
    assert.doesNotMatch(JSON.stringify(body), ours, where);
    if (status === 401) assert.ok(headers.get('www-authenticate'), `${where}: WWW-Authenticate`);
    if (status === 429 || status === 503) assert.match(headers.get('retry-after') ?? '', /^\d+$/, where);
  }

  #validator(schema: TSchema): ReturnType<typeof Compile> {
    const known = this.#compiled.get(schema) ?? Compile(schema);
    this.#compiled.set(schema, known);
    return known;
  }

  #demand(validator: ReturnType<typeof Compile>, value: unknown, where: string): void {
    if (validator.Check(value)) return;
    const problems = validator.Errors(value)[1].map((error) => `${error.instancePath} ${error.message}`);
    assert.fail(`${where}: ${problems.join('; ')}\n${JSON.stringify(value)}`);
  }
}

/** The document with each `$ref` replaced by its target. */
// biome-ignore lint/suspicious/noExplicitAny: a document read from outside
function withoutReferences(document: any, part: any = document): any {
  if (typeof part !== 'object' || part === null) return part;
  if (Array.isArray(part)) return part.map((each) => withoutReferences(document, each));
  const { $ref, ...own } = part;
  const steps = $ref?.slice(2).split('/') ?? [];
  const target = steps.reduce((node: Record<string, unknown>, step: string) => node[step], document);
  const whole = $ref === undefined ? own : { ...target, ...own };
  return Object.fromEntries(
    Object.entries(whole).map(([name, member]) => [name, withoutReferences(document, member)]),
  );
}

function matches(template: string, path: string): boolean {
  const [steps, given] = [template.split('/'), path.split('/')];
  const fits = (step: string, i: number) => step === given[i] || (step.startsWith('{') && given[i] !== '');
  return steps.length === given.length && steps.every(fits);
}

export class CheckedClient extends Client {
  readonly declaration: Declaration;

  constructor(client: Client, declaration: Declaration) {
    super(client.base, client.key);
    this.declaration = declaration;
  }

  /** A checked client of the cloud at `base`. */
  static async open(base: string, key?: string): Promise<CheckedClient> {
    const client = new Client(base, key);
    const { status, body } = await client.call('/api/openapi.json?async=true');
    assert.equal(status, 200);
    return new CheckedClient(client, new Declaration(body));
  }

  override as(key: string | undefined): CheckedClient {
    return new CheckedClient(super.as(key), this.declaration);
  }

  override async call(path: string, call: Call = {}): Promise<Answer> {
    const answer = await super.call(path, call);
    const method = call.method ?? (call.json === undefined && call.body === undefined ? 'GET' : 'POST');
    this.declaration.check(method, path, answer);
    return answer;
  }

  /** The body of the answer if it has this status; a failure shows the actual answer. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  async expect(status: number, path: string, call: Call = {}): Promise<any> {
    const { status: actual, body } = await this.call(path, call);
    assert.equal(actual, status, `${path}: ${JSON.stringify(body)}`);
    return body;
  }

  /** The problem if the call is refused with this status and code. */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  async refused(status: number, code: string, [path, call = {}]: [string, Call?]): Promise<any> {
    const body = await this.expect(status, path, call);
    assert.equal(body.code, code, `${path}: ${JSON.stringify(body)}`);
    return body;
  }
}
