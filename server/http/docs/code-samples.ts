/** Examples of each call, for curl and the SDK. */
import { CALL_SAMPLES, type CallSample } from './call-samples.ts';

/** A call and its URL. */
export interface Called {
  readonly method: string;
  readonly path: string;
  readonly operationId: string;
  readonly permission: string;
}

/** The body of a call as importers of OpenAPI send it; undefined if it needs an id that is unknown yet. */
export function bodyExample(operationId: string): { readonly example?: object } {
  const { body } = CALL_SAMPLES[operationId] ?? {};
  return body === undefined || JSON.stringify(body).includes('"$') ? {} : { example: body };
}

/** The call with curl; undefined: curl cannot make it. */
function curlExample(called: Called): string | undefined {
  const { method, operationId, permission } = called;
  const sample = CALL_SAMPLES[operationId] ?? {};
  if (sample.instead !== undefined) return undefined;
  const url = `"$CLOUD${pathOf(called, sample)}${sample.query ?? ''}"`;
  const isImplied = method === 'GET' || (method === 'POST' && (sample.body ?? sample.form) !== undefined);
  const lines = [`curl ${isImplied ? '' : `-X ${method} `}${url}`];
  if (permission !== 'public') lines.push('-H "X-API-Key: $KEY"');
  if (sample.body)
    lines.push("-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(sample.body))}`);
  for (const [name, value] of Object.entries(sample.form ?? {})) {
    const field = `${name}=${value}`;
    lines.push(`-F ${/^[\w=@.-]+$/.test(field) ? field : quoted(field)}`);
  }
  if (sample.options) lines.push(sample.options);
  return lines.join(' \\\n  ');
}

/**
 * The call with the SDK, after `const cloud = createCloud({ baseUrl, apiKey })`; undefined as in
 * curlExample().
 */
function sdkExample(called: Called): string | undefined {
  const sample = CALL_SAMPLES[called.operationId] ?? {};
  if (sample.instead !== undefined) return undefined;
  const ids = pathOf(called, sample).split('/');
  const params = called.path
    .split('/')
    .flatMap((segment, index) => (segment.startsWith('{') ? [literal(ids[index])] : []));
  const query = queryOf(sample);
  const args = [
    ...params,
    ...(sample.body === undefined ? [] : [literal(sample.body)]),
    ...(sample.form === undefined ? [] : [formLiteral(sample.form)]),
    ...(Object.keys(query).length === 0 ? [] : [literal(query)]),
  ];
  return `await cloud.${called.operationId}(${args.join(', ')});`;
}

/** The query for the SDK: typed, without the paging parameters that the SDK sets. */
function queryOf({ query }: CallSample): Record<string, unknown> {
  const members = [...new URLSearchParams(query)].filter(([name]) => name !== 'limit' && name !== 'cursor');
  return Object.fromEntries(
    members.map(([name, value]) => [name, /^(?:true|false|\d+)$/.test(value) ? JSON.parse(value) : value]),
  );
}

/** For the member `x-codeSamples`, which viewers and importers of OpenAPI show. */
export function codeSamples(called: Called): readonly { lang: string; label: string; source: string }[] {
  const [curl, sdk] = [curlExample(called), sdkExample(called)];
  return [
    ...(curl === undefined ? [] : [{ lang: 'Shell', label: 'curl', source: curl }]),
    ...(sdk === undefined ? [] : [{ lang: 'JavaScript', label: 'SDK', source: sdk }]),
  ];
}

/** A value as code: members without quotes, `$VM_ID` as the variable `vmId`. */
function literal(value: unknown): string {
  return JSON.stringify(value)
    .replace(/"(\w+)":/g, '$1: ')
    .replaceAll(',"', ', "')
    .replace(/"\$([A-Z_]+)"/g, (_, name: string) => camelCase(name));
}

const camelCase = (name: string) =>
  name.toLowerCase().replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());

function formLiteral(form: Readonly<Record<string, string>>): string {
  const members = Object.entries(form).map(([name, value]) => {
    const text = JSON.stringify(value.replace(/^@/, ''));
    return `${name}: ${value.startsWith('@') ? `new File(['…'], ${text})` : text}`;
  });
  return `{ ${members.join(', ')} }`;
}

/** Single-quotes a shell word, with variables in double quotes. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`).replace(/\$[A-Z_]+/g, (variable) => `'"${variable}"'`)}'`;
}

function pathOf({ path }: Called, sample: CallSample): string {
  const segments = path.split('/');
  const filled = segments.map((segment, index) => {
    const name = /^\{(\w+)\}$/.exec(segment)?.[1];
    if (name === undefined) return segment;
    return sample.path?.[name] ?? `$${variableFor(name, segments[index - 1] ?? '')}`;
  });
  return filled.join('/');
}

/** The variable for `{id}`, named after the resource. */
function variableFor(name: string, folder: string): string {
  if (name !== 'id') return name.toUpperCase();
  const noun = folder === 'storage' ? 'object' : folder.replace(/s$/, '');
  return `${noun.replaceAll('-', '_').toUpperCase()}_ID`;
}
