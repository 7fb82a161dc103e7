/** Generates openapi.json (OpenAPI 3.1) from the declared routes. A pure function, without a server. */
import { STATUS_CODES } from 'node:http';
import { ERRORS, type ErrorCode } from '../../platform/errors.ts';
import { JSON_MAX_BYTES } from '../../platform/json/json.ts';
import { PROBLEM_SCHEMA } from '../response.ts';
import { asksForPassword, mayRespondAsync, type Route, takesIdempotencyKey } from '../route.ts';
import { ACCEPTED, OperationView } from '../routes/operation-routes.ts';
import { bodyExample, type Called, codeSamples } from './code-samples.ts';
import { Components } from './openapi-components.ts';

const WRONG_CREDENTIAL = [
  'invalid_api_key',
  'invalid_session',
  'incomplete_session',
  'account_suspended',
] as const;

/** The `default` response of each call in openapi.json. */
const COMMON_ERRORS: readonly ErrorCode[] = [
  'invalid_request',
  'invalid_json',
  'unsupported_media_type',
  'payload_too_large',
  'missing_api_key',
  'invalid_api_key',
  'invalid_session',
  'incomplete_session',
  'account_suspended',
  'admin_required',
  'scope_required',
  'cross_site_request',
  'host_unreachable',
  'idempotency_in_flight',
  'idempotency_mismatch',
  'operation_interrupted',
  'rate_limited',
  'internal_error',
  'shutting_down',
];

/** Errors that a route may return besides its own, depending on its input and permission. */
export function errorsOf(route: Route): ErrorCode[] {
  const errors = new Set<ErrorCode>(route.errors);
  if (asksForPassword(route) === 'refuse') errors.add('password_required');
  // Every check for credits first checks that billing is consistent, and then the cap.
  if (errors.has('insufficient_credits')) {
    errors.add('billing_inconsistent');
    errors.add('spend_cap_reached');
  }
  errors.add('rate_limited');
  errors.add('internal_error');
  errors.add('shutting_down');
  if (route.livesOn !== undefined) errors.add('host_unreachable');
  // The host node received the call but sent no response.
  if (route.livesOn !== undefined && route.method !== 'GET') errors.add('operation_interrupted');
  if (route.permission !== 'public') errors.add('missing_api_key');
  if (route.permission !== 'public' || route.knowsCaller) {
    for (const code of WRONG_CREDENTIAL) errors.add(code);
  }
  if (route.acceptsTicket) errors.add('invalid_ticket');
  if (route.permission !== 'public' && route.method !== 'GET') errors.add('cross_site_request');
  if (route.permission === 'admin' || route.permission === 'admin:read') errors.add('admin_required');
  else if (!['public', 'authenticated'].includes(route.permission)) errors.add('scope_required');
  if (route.params || route.query || route.body || route.method === 'POST') errors.add('invalid_request');
  if (route.body) errors.add('unsupported_media_type');
  if (route.body && route.consumes !== 'multipart')
    for (const code of ['invalid_json', 'payload_too_large'] as const) errors.add(code);
  if (takesIdempotencyKey(route))
    for (const code of ['idempotency_in_flight', 'idempotency_mismatch'] as const) errors.add(code);
  return [...errors].sort();
}

interface ObjectSchema {
  readonly properties: Record<string, Record<string, unknown>>;
  readonly required?: readonly string[];
}

export interface OpenApiDocument {
  readonly openapi: string;
  readonly info: Readonly<Record<string, unknown>>;
  readonly servers: readonly { url: string }[];
  readonly security: readonly unknown[];
  readonly tags: readonly { name: string; description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Record<string, unknown>>>>>;
  readonly components: Readonly<Record<string, unknown>>;
}

/** Descriptions by tag. */
const TAGS: Readonly<Record<Route['tag'], string>> = {
  accounts: 'Accounts, sessions, API keys and access keys',
  storage: 'Buckets, objects and their versions',
  compute: 'Virtual machines and images',
  databases: 'Databases of several engines',
  recovery: 'Recovery points of the whole cloud',
  billing: 'Credits, usage, prices and quotas',
  webhooks: 'Events sent to your URLs',
  system: 'Health, operations and this document',
  admin: 'For administrators',
};

export interface DocumentOptions {
  /** Name and description of the product. */
  readonly version: string;
  /**
   * Describes `Prefer: respond-async` and its 202 at every call that accepts it, not only at slow
   * ones. In a generated client, the result of such a call is its body or an operation.
   */
  readonly hasAsync?: boolean;
}

/** The document for these routes, with every schema inline. */
function inlineOpenApi(routes: readonly Route[], options: DocumentOptions): OpenApiDocument {
  const { version, hasAsync = false } = options;
  const paths: Record<string, Record<string, Record<string, unknown>>> = {};
  for (const route of routes) {
    const item = paths[route.path] ?? {};
    item[route.method.toLowerCase()] = operation(route, hasAsync);
    paths[route.path] = item;
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Cloudlet',
      version,
      description:
        'A whole cloud in one process. Every response that is not 2xx is problem details with a stable `code`. ' +
        'Calls that change something also run in the background with `Prefer: respond-async`: ' +
        '`/api/openapi.json?async=true` describes it at each call.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ apiKey: [] }, { bearer: [] }],
    tags: [...new Set(routes.map((route) => route.tag))].map((name) => ({ name, description: TAGS[name] })),
    paths,
    components: {
      securitySchemes: {
        apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
        bearer: { type: 'http', scheme: 'bearer' },
      },
    },
  };
}

/** The document with references to named components, for client generators. */
export function openApi(routes: readonly Route[], options: DocumentOptions): OpenApiDocument {
  const inline = inlineOpenApi(routes, options);
  const components = new Components();
  const paths = Object.entries(inline.paths).map(([path, item]) => {
    const operations = Object.entries(item).map(([method, each]) => [
      method,
      components.operation({ ...each, ...samplesOf(path, method, each) }),
    ]);
    return [path, Object.fromEntries(operations)];
  });
  return {
    ...inline,
    paths: Object.fromEntries(paths),
    components: { ...components.sorted(), ...inline.components },
  };
}

function samplesOf(path: string, method: string, operation: Record<string, unknown>) {
  const { operationId, 'x-permission': permission } = operation as Record<string, string>;
  const called = { path, method: method.toUpperCase(), operationId, permission } as Called;
  const samples = codeSamples(called);
  return samples.length === 0 ? {} : { 'x-codeSamples': samples };
}

/** The text of the committed file openapi.json. */
export function renderOpenApi(document: OpenApiDocument): string {
  return `${render(document, 0)}\n`;
}

/** A value that fits on one line is rendered on one line. */
function render(value: unknown, indent: number): string {
  const line = JSON.stringify(value, null, 1)?.replace(/\n\s*/g, ' ') ?? 'null';
  if (typeof value !== 'object' || value === null || indent + line.length < 110) return line;
  const pad = ' '.repeat(indent + 1);
  const members = Object.entries(value).map(([name, member]) =>
    Array.isArray(value)
      ? render(member, indent + 1)
      : `${JSON.stringify(name)}: ${render(member, indent + 1)}`,
  );
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  return `${open}\n${members.map((member) => pad + member).join(',\n')}\n${' '.repeat(indent)}${close}`;
}

function operation(route: Route, hasAsync: boolean): Record<string, unknown> {
  return {
    operationId: route.name,
    tags: [route.tag],
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    'x-permission': route.permission,
    ...(route.permission === 'public' ? { security: [] } : {}),
    parameters: [
      ...parameters(route.params, 'path'),
      ...parameters(route.query, 'query'),
      ...headerParameters(route, hasAsync),
    ],
    ...(route.body === undefined ? {} : { requestBody: requestBody(route) }),
    responses: { ...successes(route, hasAsync), ...failures(route) },
  };
}

function parameters(schema: unknown, location: 'path' | 'query'): unknown[] {
  const { properties, required = [] } = (schema ?? { properties: {} }) as ObjectSchema;
  return Object.entries(properties).map(([name, { $id, description, ...rest }]) => ({
    ...($id === undefined ? {} : { $id }),
    name,
    in: location,
    ...(location === 'path' || required.includes(name) ? { required: true } : {}),
    ...(description === undefined ? {} : { description }),
    schema: rest,
  }));
}

const IDEMPOTENCY_KEY = {
  $id: 'IdempotencyKey',
  name: 'Idempotency-Key',
  in: 'header',
  description:
    'Within 24 h, requests with the same key and credential take effect once and get the same response. Each access key and ' +
    'session has its own Idempotency-Keys; a rotated main API key keeps those of the old one. Without a credential ' +
    'only a success is stored. For a response above 16 KiB only the success is stored: the repeated call returns its ' +
    'status and `{"response_not_kept":true,…}`. Read-only calls are executed again. At most 64 MiB are stored per account; ' +
    'beyond, the oldest are deleted earlier',
  schema: { type: 'string', maxLength: 255 },
};

const PREFER = {
  $id: 'Prefer',
  name: 'Prefer',
  in: 'header',
  description:
    '`respond-async`: responds immediately with 202 and an operation. Its `result` is stored up to 16 KiB. A read-only call ' +
    'responds as usual',
  schema: { type: 'string' },
};

/** A call that can be cancelled takes long. */
function saysAsync(route: Route, hasAsync: boolean): boolean {
  return mayRespondAsync(route) && (hasAsync || route.isCancellable === true);
}

function headerParameters(route: Route, hasAsync: boolean): unknown[] {
  return [
    ...(takesIdempotencyKey(route) ? [IDEMPOTENCY_KEY] : []),
    ...(saysAsync(route, hasAsync) ? [PREFER] : []),
  ];
}

function requestBody(route: Route): unknown {
  const type = route.consumes === 'multipart' ? 'multipart/form-data' : 'application/json';
  const required = ((route.body as unknown as ObjectSchema).required ?? []).length > 0;
  const content = { [type]: { schema: route.body, ...bodyExample(route.name) } };
  if (route.consumes === 'multipart') return { required, content };
  return { required, description: `At most ${(route.maxBodyBytes ?? JSON_MAX_BYTES) / 1024} KiB`, content };
}

const MEDIA = {
  json: 'application/json',
  list: 'application/json',
  bytes: '*/*',
  html: 'text/html',
  text: 'text/plain',
};

function successes(route: Route, hasAsync: boolean): Record<string, unknown> {
  const media = MEDIA[route.produces ?? 'json'];
  const done = Object.entries(route.responses).map(([status, schema]) => [
    status,
    {
      description: status === '201' ? 'Created' : 'Done',
      content: { [media]: { schema } },
    },
  ]);
  return { ...Object.fromEntries(done), ...(saysAsync(route, hasAsync) ? { [ACCEPTED]: OPERATION } : {}) };
}

const OPERATION = {
  $id: 'Accepted',
  description: 'Accepted; the operation shows the outcome once the call has ended',
  content: { 'application/json': { schema: OperationView } },
};

const problem = { 'application/problem+json': { schema: PROBLEM_SCHEMA } };

/** A route's own errors by status; `default` has those that follow from its input and permission. */
function failures(route: Route): Record<string, unknown> {
  const codes = errorsOf(route);
  const own = codes.filter((code) => !COMMON_ERRORS.includes(code));
  const byStatus = [...Map.groupBy(own, (code) => ERRORS[code].http)].map(([status, each]) => [
    status,
    { $id: nameOf(status), description: each.join(', '), content: problem },
  ]);
  const common = codes.filter((code) => COMMON_ERRORS.includes(code)).join(', ');
  return {
    ...Object.fromEntries(byStatus),
    default: { $id: commonName(route), description: common, content: problem },
  };
}

const VERBS = { GET: 'Read', POST: 'Create', PATCH: 'Change', DELETE: 'Delete' };

/** A name such as `AdminReadProblem`, derived from everything that determines the common errors. */
function commonName(route: Route): string {
  const { permission, knowsCaller, method, consumes, body, params, query, livesOn } = route;
  const callers: Readonly<Record<string, string>> = {
    public: knowsCaller ? 'AnyCaller' : 'Public',
    authenticated: 'Authenticated',
    admin: 'Admin',
  };
  const input = body ? (consumes === 'multipart' ? 'Form' : 'Body') : params || query ? 'Parameters' : '';
  const place = livesOn === undefined ? '' : 'Host';
  return `${callers[permission] ?? 'Scoped'}${VERBS[method]}${input}${place}Problem`;
}

/** A name such as `NotFound`. */
function nameOf(status: number): string {
  return (STATUS_CODES[status] ?? `Status${status}`).replace(/[^A-Za-z]/g, '');
}
