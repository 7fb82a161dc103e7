/** The API reference page: Scalar, built with the console, shows openapi.json; the list of errors is ours. */
import { ERRORS, type ErrorCode } from '../../platform/errors.ts';
import { VERSION } from '../../platform/version.ts';
import { ERROR_HELP } from '../error-help.ts';
import { escapeHtml, PAGE_ICON, PAGE_STYLE, pageHeaders } from '../page.ts';

const STYLE = `${PAGE_STYLE}
table { display: block; overflow-x: auto; border-collapse: collapse; font-size: .88rem; }
td, th { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); }
tr:target { background: var(--raised); }
`;

/** `library`: path of the script that shows the document; undefined: the console is not built. */
export function referencePage(library: string | undefined): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Cloudlet API</title>
${PAGE_ICON}
<style>${STYLE}</style>
</head>
<body>
<div id="reference"${library === undefined ? '' : ` data-library="${escapeHtml(library)}"`}></div>
<main id="errors">
<h1>Cloudlet API</h1>
<p>Version ${escapeHtml(VERSION)}. For programs: <a href="/api/openapi.json">openapi.json</a>.</p>
${library === undefined ? '<p>The list of calls comes with the console, which <code>npm start</code> builds.</p>' : '<p><a href="#">All calls</a></p>'}
<h2>Error codes</h2>
<p>A response that is not 2xx is problem details (RFC 9457) with a stable <code>code</code>.</p>
<table><tr><th>code</th><th>status</th><th>cause</th><th>fix</th></tr>${renderErrors()}</table>
</main>
<script>${SCRIPT}</script>
</body>
</html>
`;
}

/**
 * The policy of the page. Scalar's editor makes `<style>` elements without a nonce, so inline styles are
 * allowed. Inline scripts and other origins are not. The console shows the page in a frame.
 */
export function referenceHeaders(html: string): Record<string, string> {
  const policy = (pageHeaders(html)['content-security-policy'] ?? '')
    .replace(/style-src [^;]*/, "style-src 'self' 'unsafe-inline'")
    .replace(/script-src /, "script-src 'self' ")
    .replace(/img-src [^;]*/, "img-src 'self' data: blob:")
    .replace(/frame-ancestors [^;]*/, "frame-ancestors 'self'");
  return { 'content-security-policy': `${policy}; font-src 'self'`, 'x-frame-options': 'SAMEORIGIN' };
}

/** Text as HTML; text in backticks becomes code. */
function prose(text: string): string {
  return escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>');
}

function renderErrors(): string {
  const rows = Object.entries(ERRORS).map(([code, { http, title }]) => {
    const { cause, fix } = ERROR_HELP[code as ErrorCode];
    const why = `<b>${escapeHtml(title)}.</b> ${prose(cause)}`;
    return `<tr id="error-${code}"><td><code>${code}</code></td><td>${http}</td><td>${why}</td><td>${prose(fix)}</td></tr>`;
  });
  return rows.join('');
}

/**
 * Shows the errors for `#errors` and `#error-CODE`, else the calls. Requests are sent with the key
 * that the reader typed, else with the console's session in this browser. A typed key stays in the
 * page.
 */
const SCRIPT = `
const reference = document.querySelector('#reference');
const errors = document.querySelector('#errors');
const { library } = reference.dataset;

function permissionWords(permission) {
  if (permission === 'public') return 'Needs no key.';
  if (permission === 'authenticated') return 'Needs a key.';
  if (permission === 'admin') return "Needs an administrator's key.";
  if (permission === 'admin:read') return "Needs the key of an administrator or an auditor.";
  if (permission === 'everything') return 'Needs a key with all scopes and no limits to buckets.';
  const wider = permission === 'storage:append' ? ' or \`storage:write\`' : '';
  return 'Needs a key with the scope \`' + permission + '\`' + wider + '.';
}

function send(input, init) {
  const request = new Request(input, init);
  const token = localStorage.getItem('cloudlet-session');
  // Fields that the reader left empty come as empty headers.
  for (const name of ['x-api-key', 'authorization'])
    if (/^(?:Bearer)?$/.test((request.headers.get(name) ?? '').trim())) request.headers.delete(name);
  const hasKey = request.headers.has('x-api-key') || request.headers.has('authorization');
  if (!hasKey && token) request.headers.set('cloudlet-session', token);
  return fetch(request, hasKey ? { credentials: 'omit' } : {});
}

async function readDocument() {
  const document = await (await fetch('/api/openapi.json?async=true')).json();
  document.servers = [{ url: location.origin }];
  document.info.description += ' See the [error codes](#errors), with causes and fixes.';
  for (const item of Object.values(document.paths))
    for (const operation of Object.values(item))
      operation.description = [operation.description, permissionWords(operation['x-permission'])].filter(Boolean).join('\\n\\n');
  return document;
}

function chosenScheme() {
  const chosen = localStorage.getItem('mantine-color-scheme-value');
  if (chosen === 'dark' || chosen === 'light') return chosen;
  return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
}

/** Links such as #createVm, which name the operation alone. */
function openOperation(document) {
  const wanted = location.hash.slice(1);
  for (const item of Object.values(document.paths))
    for (const { operationId, tags } of Object.values(item))
      if (operationId === wanted) location.replace('#tag/' + tags[0] + '/' + operationId);
}

async function showCalls() {
  const script = Object.assign(document.createElement('script'), { src: library });
  // Its schema checker tries eval otherwise, which the policy refuses.
  window.__zod_globalConfig = { jitless: true };
  const loaded = new Promise((resolve, reject) => Object.assign(script, { onload: resolve, onerror: reject }));
  document.head.append(script);
  const [content] = await Promise.all([readDocument(), loaded]);
  openOperation(content);
  Scalar.createApiReference(reference, {
    content,
    customFetch: send,
    theme: 'none',
    withDefaultFonts: false,
    telemetry: false,
    persistAuth: false,
    hideClientButton: true,
    showDeveloperTools: 'never',
    agent: { disabled: true },
    mcp: { disabled: true },
    forceDarkModeState: chosenScheme(),
    hideDarkModeToggle: true,
    hiddenClients: true,
    documentDownloadType: 'json',
    authentication: { preferredSecurityScheme: 'apiKey' },
    generateOperationSlug: ({ operationId, method, path }) => operationId || method + path,
    customCss: '.light-mode { --scalar-color-accent: #0f5f5c } .dark-mode { --scalar-color-accent: #75c1b8 }',
  });
}

let calls;
function show() {
  const isErrors = library === undefined || location.hash.startsWith('#error');
  errors.hidden = !isErrors;
  reference.hidden = isErrors;
  document.querySelector('style').disabled = !isErrors;
  if (isErrors) document.getElementById(location.hash.slice(1))?.scrollIntoView();
  else calls ??= showCalls();
}
addEventListener('hashchange', show);
show();
`;
