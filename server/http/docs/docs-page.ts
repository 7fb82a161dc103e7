/** Renders openapi.json as one self-contained page: every call with a working example. */
import { ERRORS, type ErrorCode } from '../../platform/errors.ts';
import { ERROR_HELP } from '../error-help.ts';
import { escapeHtml, PAGE_ICON, PAGE_STYLE } from '../page.ts';
import { type Entry, errorLinks, type Operation, prose, renderOperation } from './docs-operation.ts';
import { COMMON_ERRORS, type OpenApiDocument } from './openapi.ts';

const STYLE = `${PAGE_STYLE}
body { display: grid; grid-template-columns: 19rem minmax(0, 60rem); } main { margin: 0; padding-top: 1.5rem; }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1rem; border-right: 1px solid var(--line); font-size: .85rem; }
nav ul { list-style: none; margin: 0; padding: 0; } nav a { display: block; padding: .1rem 0; text-decoration: none; } nav h2 { font-size: .85rem; margin: 1rem 0 .2rem; }
input { width: 100%; padding: .45rem .6rem; font: inherit; color: inherit; background: var(--raised); border: 1px solid var(--line); border-radius: 6px; }
#asked { max-width: 34rem; } [hidden] { display: none; } :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
details { border: 1px solid var(--line); border-radius: 8px; margin: .6rem 0; scroll-margin-top: .5rem; } details[open] > summary { border-bottom: 1px solid var(--line); }
summary { padding: .6rem .8rem; cursor: pointer; background: var(--raised); border-radius: 8px; } details > div { padding: 0 .8rem .8rem; }
summary b { display: inline-block; min-width: 4.2rem; font: 600 .8rem ui-monospace, monospace; color: var(--accent); } summary code { margin-right: .6rem; }
h4 { margin: 1rem 0 .3rem; } table { display: block; overflow-x: auto; border-collapse: collapse; font-size: .88rem; } tr:target { background: var(--raised); }
td, th { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); } details td:last-child { width: 60%; }
.copied { position: relative; } .copied button { position: absolute; top: .4rem; right: .4rem; font: inherit; font-size: .8rem; } .codes { font-size: .85rem; } i { color: var(--soft); font-size: .8rem; }
.answer { max-height: 20rem; } @media (max-width: 50rem) { body { display: block; } nav { position: static; height: auto; max-height: 45vh; border: 0; } }
`;

/** A whole HTML page. */
export function docsPage(document: OpenApiDocument): string {
  const entries = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => {
      return { method: method.toUpperCase(), path, operation: operation as unknown as Operation };
    }),
  );
  const shown = new Map<string, string>();
  const groups = document.tags.map(({ name }) => {
    const own = entries.filter(({ operation }) => operation.tags.includes(name));
    const calls = own.map((entry) => renderOperation(entry, shown)).join('\n');
    return {
      links: renderLinks(name, own),
      calls: `<section><h2 id="${name}">${name}</h2>${calls}</section>`,
    };
  });
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
<nav aria-label="Contents">
<input id="find" type="search" placeholder="Find a call" aria-label="Find a call" autocomplete="off">
<p id="none" hidden>No matching calls.</p>
${groups.map(({ links }) => links).join('\n')}
<h2><a href="#errors">Error codes</a></h2>
</nav>
<main>
${renderIntroduction(String(document.info['version']))}
${groups.map(({ calls }) => calls).join('\n')}
<section><h2 id="errors">Error codes</h2>
<p id="common">Common errors of nearly all calls: <span class="codes">${errorLinks(COMMON_ERRORS)}</span>.</p>
<table><tr><th>code</th><th>status</th><th>cause</th><th>fix</th></tr>${renderErrors()}</table></section>
</main>
<script>${DOCS_SCRIPT}</script>
</body>
</html>
`;
}

function renderIntroduction(version: string): string {
  return `<h1>Cloudlet API</h1>
<p class="soft">Version ${escapeHtml(version)}. Machine-readable: <a href="/api/openapi.json">openapi.json</a>.</p>
<p id="asked" hidden><label for="key">Your API key, for the examples. It stays in this page.</label>
<input id="key" type="text" autocomplete="off" spellcheck="false" placeholder="clk_…"></p>
<p>Examples are lines for a shell. Where they still say <code>$CLOUD</code>, <code>$KEY</code> or another variable, set it first:</p>
<pre>CLOUD=<span class="cloud">http://localhost:8080</span>
KEY=clk_…</pre>
<p>Send your key as <code>X-API-Key: …</code> or <code>Authorization: Bearer …</code>. Every response that is not 2xx is problem details
(RFC 9457) with a stable <code>code</code>; the <a href="#errors">table below</a> explains causes and fixes. A POST, PATCH or DELETE
with an <code id="headers">Idempotency-Key</code> takes effect once, however often it is sent. With <code>Prefer: respond-async</code> the response is
an immediate <a href="#getOperation">operation</a>. Unknown members and parameters are refused by <code>PATCH</code> and by administrators' calls. Other calls refuse those that look like a mistyped known name, ignore the rest, and list them in a <code>Warning</code> header.</p>`;
}

function renderLinks(name: string, entries: readonly Entry[]): string {
  const links = entries.map(({ method, path, operation: { operationId, summary } }) => {
    const title = escapeHtml(`${method} ${path}`);
    return `<li><a href="#${operationId}" title="${title}">${prose(summary)}</a></li>`;
  });
  return `<section><h2>${name}</h2><ul>${links.join('')}</ul></section>`;
}

function renderErrors(): string {
  const rows = Object.entries(ERRORS).map(([code, { http, title }]) => {
    const { cause, fix } = ERROR_HELP[code as ErrorCode];
    const why = `<b>${escapeHtml(title)}.</b> ${prose(cause)}`;
    return `<tr id="error-${code}"><td><code>${code}</code></td><td>${http}</td><td>${why}</td><td>${prose(fix)}</td></tr>`;
  });
  return rows.join('');
}

/** The script of the docs page. The key that is typed stays in the page: it is neither stored nor sent. */
const DOCS_SCRIPT = `
const all = (selector) => [...document.querySelectorAll(selector)];
const find = document.querySelector('#find');
const key = document.querySelector('#key');
const none = document.querySelector('#none');

function fill() {
  const typed = key.value.trim().replace(/[\\\\"$\`]/g, '\\\\$&');
  for (const element of all('.cloud')) element.textContent = location.origin;
  for (const element of all('.key')) element.textContent = typed || '$KEY';
}

const words = new Map(all('.call').map((call) => [call, (call.id + ' ' + call.querySelector('summary').textContent).toLowerCase()]));
function search() {
  const wanted = find.value.toLowerCase().split(/\\s+/);
  for (const [call, text] of words) {
    call.hidden = !wanted.every((word) => text.includes(word));
    document.querySelector('nav a[href="#' + call.id + '"]').parentElement.hidden = call.hidden;
  }
  for (const part of all('main > section, nav section'))
    if (part.querySelector('.call, li')) part.hidden = !part.querySelector('.call:not([hidden]), li:not([hidden])');
  none.hidden = [...words.keys()].some((call) => !call.hidden);
}

function openLinked() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  if (target.closest('[hidden]')) {
    find.value = '';
    search();
  }
  if (target.matches('details')) target.open = true;
  target.scrollIntoView();
}

async function copy(button) {
  const text = button.parentElement;
  getSelection().selectAllChildren(text.firstElementChild);
  try {
    await navigator.clipboard.writeText(text.firstElementChild.textContent);
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  } catch {
    button.textContent = 'Selected';
  }
}

for (const example of all('pre.curl')) {
  const text = document.createElement('div');
  example.replaceWith(text);
  const button = document.createElement('button');
  button.textContent = 'Copy';
  button.addEventListener('click', () => copy(button));
  text.className = 'copied';
  text.append(example, button);
}
document.querySelector('#asked').hidden = false;
key.addEventListener('input', fill);
find.addEventListener('input', search);
addEventListener('hashchange', openLinked);
fill();
openLinked();
`;
