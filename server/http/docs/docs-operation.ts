/** One call on the docs page: parameters, an example, the response, the errors. */
import { ERRORS, type ErrorCode } from '../../platform/errors.ts';
import { escapeHtml } from '../page.ts';
import { CALL_SAMPLES } from './call-samples.ts';
import { curlExample } from './code-samples.ts';
import { COMMON_ERRORS } from './openapi.ts';
import { describe, exampleOf, type Field, fieldsOf, type Schema, typeOf } from './schema-fields.ts';

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly 'x-permission': string;
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly description?: string;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
  readonly responses: Readonly<
    Record<string, { description: string; content?: Readonly<Record<string, { schema: Schema }>> }>
  >;
}

export interface Entry {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

/** The call that returns an id, by the variable for it. */
const SOURCES: Readonly<Record<string, string>> = {
  OBJECT_ID: 'listObjects',
  UPLOAD_ID: 'listUploads',
  VM_ID: 'listVms',
  ACCESS_KEY_ID: 'listAccessKeys',
  SESSION_ID: 'listSessions',
  WEBHOOK_ID: 'listWebhooks',
  DELIVERY_ID: 'listWebhookDeliveries',
  IMAGE_ID: 'adminListImages',
  ACCOUNT_ID: 'adminListAccounts',
  CODE: 'approveLogin',
  USER_CODE: 'startDeviceLogin',
  DEVICE_CODE: 'startDeviceLogin',
};

/** `shown`: responses shown so far, by schema, with the call that shows them. This call's are added. */
export function renderOperation(entry: Entry, shown: Map<string, string>): string {
  const { method, path, operation } = entry;
  const { operationId: id, summary, description } = operation;
  return `<details class="call" id="${id}"><summary><b>${method}</b><code>${escapeHtml(path)}</code>
<span class="soft">${prose(summary)}</span></summary><div>
${description ? `<p>${prose(description)}</p>` : ''}
<p class="soft">${permissionWords(operation['x-permission'])}</p>
${renderParameters(operation)}
${renderExample(entry)}
${renderResponse(operation, shown)}
${renderFailures(operation)}
</div></details>`;
}

/** Text as HTML; parts between backticks become code. */
export function prose(text: string): string {
  return escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>');
}

function permissionWords(permission: string): string {
  if (permission === 'public') return 'Needs no key.';
  if (permission === 'authenticated') return 'Needs a key.';
  if (permission === 'admin') return "Needs an administrator's key.";
  const wider = permission === 'storage:append' ? ' or <code>storage:write</code>' : '';
  return `Needs a key with the scope <code>${permission}</code>${wider}.`;
}

function renderParameters({ parameters, requestBody }: Operation): string {
  const media = Object.values(requestBody?.content ?? {})[0];
  const given = parameters.filter((parameter) => parameter.in !== 'header');
  const headers = parameters.filter((parameter) => parameter.in === 'header');
  const rows = [
    ...given.map(({ name, in: location, required, description, schema }) => {
      const rules = description === undefined ? schema : { ...schema, description };
      const field = {
        name,
        type: typeOf(schema),
        isRequired: required === true,
        description: describe(rules),
      };
      return row(field, location === 'path' ? 'in the path' : 'in the query');
    }),
    ...(media === undefined ? [] : fieldsOf(media.schema)).map((field) => row(field, 'in the body')),
  ];
  const names = headers.map(({ name }) => `<code>${name}</code>`).join(' and ');
  const more = names && `<p class="soft">Headers: <a href="#headers">${names}</a>.</p>`;
  return `${rows.length === 0 ? '' : `<h4>Parameters</h4><table>${rows.join('')}</table>`}${more}`;
}

/** `location`: path, query or body; undefined in a response. */
function row({ name, type, isRequired, description }: Field, location?: string): string {
  const where = location === undefined ? '' : ` <i>${location}${isRequired ? '' : ', optional'}</i>`;
  const cells = [`<code>${escapeHtml(name)}</code>${where}`, escapeHtml(type), prose(description)];
  // A row without its last cell looks the same.
  const shown = cells.at(-1) === '' ? cells.slice(0, -1) : cells;
  // HTML lets `</tr>` be left out; the page has thousands of rows.
  return `<tr>${shown.map((cell) => `<td>${cell}</td>`).join('')}`;
}

function renderExample({ method, path, operation }: Entry): string {
  const { operationId, 'x-permission': permission } = operation;
  const example = curlExample({ method, path, operationId, permission });
  if (example === undefined)
    return `<h4>Example</h4><p>${prose(CALL_SAMPLES[operationId]?.instead ?? '')}</p>`;
  const sources = variablesOf(example).flatMap((name) => {
    const source = SOURCES[name];
    return source === undefined
      ? []
      : [`<code>${name}</code> is an id that <a href="#${source}">${source}</a> shows.`];
  });
  const note = sources.length === 0 ? '' : `<p class="soft">${sources.join(' ')}</p>`;
  return `<h4>Example</h4>${note}<pre class="curl">${fillable(example)}</pre>`;
}

/** With placeholders that the page's script fills with the address and the key. */
function fillable(example: string): string {
  return escapeHtml(example)
    .replaceAll('$CLOUD', '<span class="cloud">$CLOUD</span>')
    .replaceAll('$KEY', '<span class="key">$KEY</span>');
}

function renderResponse({ operationId, responses }: Operation, shown: Map<string, string>): string {
  const [status, answer] = Object.entries(responses)[0] ?? [];
  const [media, content] = Object.entries(answer?.content ?? {})[0] ?? [];
  if (status === undefined || content === undefined) return '';
  const head = `<h4>Response ${status}</h4>`;
  if (media !== 'application/json') return `${head}<p>${escapeHtml(mediaWords(media ?? ''))}</p>`;
  const list = content.schema.items;
  const key = JSON.stringify(list ?? content.schema);
  const before = shown.get(key);
  if (before !== undefined && key.length > 500) {
    return `${head}<p>${list ? 'A list of what' : 'What'} <a href="#${before}">${before}</a> answers.</p>`;
  }
  shown.set(key, before ?? operationId);
  const rows = fieldsOf(content.schema).map((field) => row(field));
  if (rows.length === 0) return `${head}<p>${escapeHtml(typeOf(content.schema))}</p>`;
  const example = JSON.stringify(exampleOf(content.schema), null, 1);
  return `${head}${list ? '<p>A list of:</p>' : ''}<table>${rows.join('')}</table><pre class="answer">${escapeHtml(example)}</pre>`;
}

function mediaWords(media: string): string {
  if (media === '*/*') return 'The bytes, with their stored Content-Type.';
  return media === 'text/html' ? 'A page.' : 'Text.';
}

/** Links to the rows of the error table. */
export function errorLinks(codes: readonly ErrorCode[]): string {
  return codes.map((code) => `<a href="#error-${code}">${code}</a> ${ERRORS[code].http}`).join(', ');
}

function renderFailures({ responses }: Operation): string {
  const failures = Object.entries(responses).filter(([status]) => Number(status) >= 400);
  const codes = failures.flatMap(([, { description }]) => description.split(', ') as ErrorCode[]);
  const own = codes.filter((code) => !COMMON_ERRORS.includes(code));
  const more = '<a href="#common">the common errors</a>';
  return `<h4>Errors</h4><p class="codes">${own.length === 0 ? '' : `${errorLinks(own)}, and `}${more}.</p>`;
}

/** Shell variables that the example needs, besides `CLOUD` and `KEY`. */
function variablesOf(example: string): string[] {
  return [...new Set([...example.matchAll(/\$([A-Z_]+)/g)].map(([, name]) => String(name)))].filter(
    (name) => name !== 'CLOUD' && name !== 'KEY',
  );
}
