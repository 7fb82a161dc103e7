/** openapi.json as one page: no script, no outside request; every call with its curl line. */
import { ERRORS } from '../errors.ts';
import type { OpenApiDocument } from './openapi.ts';
import { escapeHtml, PAGE_STYLE } from './page.ts';

const STYLE = `${PAGE_STYLE}
nav ul { columns: 2; padding-left: 1.2rem; } @media (max-width: 40rem) { nav ul { columns: 1; } }
details { border: 1px solid var(--line); border-radius: 8px; margin: .6rem 0; background: var(--raised); }
summary { padding: .6rem .8rem; cursor: pointer; } details > div { padding: 0 .8rem .8rem; }
summary b { display: inline-block; min-width: 4.2rem; font: 600 .8rem ui-monospace, monospace; color: var(--accent); }
details pre { background: var(--ground); } table { border-collapse: collapse; width: 100%; font-size: .9rem; }
td, th { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); }
`;

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly 'x-permission': string;
  readonly parameters: readonly {
    name: string;
    in: string;
    required: boolean;
    description?: string;
    schema: Schema;
  }[];
  readonly requestBody?: { content: Record<string, { schema: Schema }> };
  readonly responses: Record<string, { description: string }>;
}

interface Schema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly description?: string;
  readonly required?: readonly string[];
  readonly properties?: Record<string, Schema>;
  readonly anyOf?: readonly Schema[];
  readonly default?: unknown;
}

interface Entry {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

/** A whole HTML page. */
export function docsPage(document: OpenApiDocument): string {
  const entries = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      operation: operation as unknown as Operation,
    })),
  );
  const sections = document.tags.map(({ name }) => {
    const own = entries.filter(({ operation }) => operation.tags.includes(name));
    return `<h2 id="${name}">${name}</h2>${own.map(renderEntry).join('')}`;
  });
  const contents = document.tags.map(({ name }) => `<li><a href="#${name}">${name}</a></li>`).join('');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Cloudlet API</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>Cloudlet API</h1>
<p class="soft">Version ${escapeHtml(String(document.info.version))}. The same as data: <a href="/api/openapi.json">openapi.json</a>.</p>
<p>Send your key as <code>X-API-Key: …</code> or <code>Authorization: Bearer …</code>. Every answer that is not 2xx is
problem details (RFC 9457) with a stable <code>code</code>. A POST with an <code>Idempotency-Key</code> has one effect however often it is sent. A POST, PATCH or DELETE with
<code>Prefer: respond-async</code> is answered with an <a href="#getOperation">operation</a> at once.</p>
<nav aria-label="Contents"><ul>${contents}<li><a href="#errors">error codes</a></li></ul></nav>
${sections.join('\n')}
<h2 id="errors">Error codes</h2>
<table><tr><th>code</th><th>status</th><th>meaning</th></tr>${renderErrors()}</table>
</main>
</body>
</html>
`;
}

function renderErrors(): string {
  return Object.entries(ERRORS)
    .map(
      ([code, { http, title }]) =>
        `<tr id="error-${code}"><td><code>${code}</code></td><td>${http}</td><td>${escapeHtml(title)}</td></tr>`,
    )
    .join('');
}

function renderEntry(entry: Entry): string {
  const { method, path, operation } = entry;
  const failures = Object.entries(operation.responses).filter(([status]) => Number(status) >= 300);
  const rows = failures.map(
    ([status, { description }]) => `<tr><td>${status}</td><td>${escapeHtml(description)}</td></tr>`,
  );
  return `<details id="${operation.operationId}"><summary><b>${method}</b><code>${escapeHtml(path)}</code>
<span class="soft">${escapeHtml(operation.summary)}</span></summary><div>
${operation.description ? `<p>${escapeHtml(operation.description)}</p>` : ''}
<p class="soft">Permission: <code>${operation['x-permission']}</code></p>
${renderParameters(operation)}
<pre>${escapeHtml(curlLine(entry))}</pre>
<details><summary>Failures</summary><div><table>${rows.join('')}</table></div></details>
</div></details>`;
}

function renderParameters({ parameters, requestBody }: Operation): string {
  const media = Object.values(requestBody?.content ?? {})[0];
  const required = new Set(media?.schema.required);
  const body = Object.entries(media?.schema.properties ?? {}).map(([name, schema]) => ({
    name,
    in: 'body',
    required: required.has(name),
    description: schema.description ?? '',
    schema,
  }));
  const rows = [...parameters, ...body].map(({ name, in: place, required: must, description, schema }) => {
    const optional = must ? '' : ' <span class="soft">optional</span>';
    const cells = [
      `<code>${escapeHtml(name)}</code>${optional}`,
      place,
      escapeHtml(typeOf(schema)),
      escapeHtml(description ?? ''),
    ];
    return `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`;
  });
  return rows.length === 0
    ? ''
    : `<table><tr><th>name</th><th>in</th><th>type</th><th></th></tr>${rows.join('')}</table>`;
}

function typeOf(schema: Schema): string {
  if (schema.enum) return schema.enum.join(' | ');
  if (schema.anyOf) return [...new Set(schema.anyOf.map(typeOf))].join(' | ');
  return schema.default === undefined ? (schema.type ?? 'any') : `${schema.type}, default ${schema.default}`;
}

function curlLine({ method, path, operation }: Entry): string {
  const parts = ['curl'];
  if (method !== 'GET') parts.push(`-X ${method}`);
  if (operation['x-permission'] !== 'public') parts.push('-H "X-API-Key: $KEY"');
  const [media, content] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  if (media === 'multipart/form-data') parts.push('-F file=@photo.jpg');
  else if (content) {
    const required = content.schema.required ?? [];
    const sample = Object.fromEntries(required.map((name) => [name, `<${name}>`]));
    parts.push(`-H 'Content-Type: application/json' -d '${JSON.stringify(sample)}'`);
  }
  parts.push(`"$CLOUD${path.replace(/\{(\w+)\}/g, '<$1>')}"`);
  return parts.join(' ');
}
