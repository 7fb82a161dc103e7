/** openapi.json (OpenAPI 3.1) from the declared routes. A pure function: no server is needed to make it. */
import { ERRORS, type ErrorCode } from '../errors.ts';
import { JSON_MAX_BYTES } from '../json.ts';
import { OperationView, TAKEN } from './operation-view.ts';
import { PROBLEM_SCHEMA } from './problem.ts';
import { mayAnswerLater, type Route, takesIdempotencyKey } from './route.ts';

const WRONG_CREDENTIAL = ['invalid_api_key', 'invalid_session', 'account_suspended'] as const;

/** What any route may answer besides its own errors, by what it takes. */
export function errorsOf(route: Route): ErrorCode[] {
  const errors = new Set<ErrorCode>(route.errors);
  // Whatever asks for credits first asks whether billing is sound.
  if (errors.has('insufficient_credits')) errors.add('billing_inconsistent');
  errors.add('rate_limited');
  errors.add('internal_error');
  errors.add('shutting_down');
  if (route.permission !== 'public') errors.add('missing_api_key');
  if (route.permission !== 'public' || route.knowsCaller) {
    for (const code of WRONG_CREDENTIAL) errors.add(code);
  }
  if (route.permission !== 'public' && route.method !== 'GET') errors.add('cross_site_request');
  if (route.permission === 'admin') errors.add('admin_required');
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
  readonly security: readonly unknown[];
  readonly tags: readonly { name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Record<string, unknown>>>>>;
  readonly components: Readonly<Record<string, unknown>>;
}

/** The document for these routes. `version` is the product's. */
export function openApi(routes: readonly Route[], version: string): OpenApiDocument {
  const paths: Record<string, Record<string, Record<string, unknown>>> = {};
  for (const route of routes) {
    const item = paths[route.path] ?? {};
    item[route.method.toLowerCase()] = operation(route);
    paths[route.path] = item;
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Cloudlet',
      version,
      description:
        'A whole cloud in one process. Every answer that is not 2xx is problem details with a stable `code`.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    security: [{ apiKey: [] }, { bearer: [] }],
    tags: [...new Set(routes.map((route) => route.tag))].map((name) => ({ name })),
    paths,
    components: {
      schemas: { Problem: PROBLEM_SCHEMA, Operation: OperationView },
      securitySchemes: {
        apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
        bearer: { type: 'http', scheme: 'bearer' },
      },
    },
  };
}

/** The document as the committed file openapi.json holds it. */
export function renderOpenApi(document: OpenApiDocument): string {
  return `${JSON.stringify(document, null, 2)}\n`;
}

function operation(route: Route): Record<string, unknown> {
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
      ...headerParameters(route),
    ],
    ...(route.body === undefined ? {} : { requestBody: requestBody(route) }),
    responses: { ...successes(route), ...failures(route) },
  };
}

function parameters(schema: unknown, place: 'path' | 'query'): unknown[] {
  const { properties, required = [] } = (schema ?? { properties: {} }) as ObjectSchema;
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: place,
    required: place === 'path' || required.includes(name),
    ...(description === undefined ? {} : { description }),
    schema: rest,
  }));
}

const IDEMPOTENCY_KEY =
  'The same key within 24 h, sent with the same credential: one effect, the same answer. Every access key and ' +
  'session has its own; those of your own API key go over to the one that replaces it. Without a credential ' +
  'only a success is kept';

function headerParameters(route: Route): unknown[] {
  const common = { in: 'header', required: false };
  return [
    ...(takesIdempotencyKey(route)
      ? [
          {
            ...{ name: 'Idempotency-Key', ...common },
            description: IDEMPOTENCY_KEY,
            schema: { type: 'string', maxLength: 255 },
          },
        ]
      : []),
    ...(mayAnswerLater(route)
      ? [
          {
            ...{ name: 'Prefer', ...common },
            description: '`respond-async`: 202 and an operation at once',
            schema: { type: 'string' },
          },
        ]
      : []),
  ];
}

function requestBody(route: Route): unknown {
  const type = route.consumes === 'multipart' ? 'multipart/form-data' : 'application/json';
  const required = ((route.body as unknown as ObjectSchema).required ?? []).length > 0;
  const content = { [type]: { schema: route.body } };
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

function successes(route: Route): Record<string, unknown> {
  const media = MEDIA[route.produces ?? 'json'];
  const done = Object.entries(route.responses).map(([status, schema]) => [
    status,
    { description: status === '201' ? 'Created' : 'Done', content: { [media]: { schema } } },
  ]);
  return { ...Object.fromEntries(done), ...(mayAnswerLater(route) ? { [TAKEN]: OPERATION } : {}) };
}

const OPERATION = {
  description: 'Taken; see the operation for what becomes of it',
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Operation' } } },
};

function failures(route: Route): Record<string, unknown> {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of errorsOf(route)) {
    const { http } = ERRORS[code];
    byStatus.set(http, [...(byStatus.get(http) ?? []), code]);
  }
  const content = { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } };
  return Object.fromEntries(
    [...byStatus]
      .sort(([a], [b]) => a - b)
      .map(([status, codes]) => [status, { description: codes.join(', '), content }]),
  );
}
