/** Pages for visitors of shared links. They have no scripts, because users choose the names in them. */
import { escapeHtml, PAGE_STYLE } from '../../http/page.ts';
import { formatSize } from '../listing/entries.ts';
import type { BucketEntry } from '../schema.ts';

export interface SharedFolder {
  /** The name of the shared folder. */
  readonly title: string;
  /** Path below it; empty, or ends with "/". */
  readonly path: string;
  readonly entries: readonly BucketEntry[];
  /** Cursor of the next page. */
  readonly next: string | null;
}

const STYLE = `${PAGE_STYLE}
table { width: 100%; border-collapse: collapse; } td { padding: .45rem .6rem .45rem 0; border-bottom: 1px solid var(--line); }
td:first-child { overflow-wrap: anywhere; } td + td { text-align: right; white-space: nowrap; }
.all { display: inline-block; margin: .5rem 0 1rem; padding: .4rem .9rem; border-radius: 6px; color: #fff; background: var(--button); text-decoration: none; }
`;

/** One page of a folder: links to its files and folders, and to a zip of all of it. */
export function folderPage({ title, path, entries, next }: SharedFolder): string {
  const rows = entries.map((entry) => rowOf(entry, path)).join('\n');
  const more = next === null ? '' : `<p><a href="?${query({ path, cursor: next })}">More files</a></p>`;
  const empty = entries.length === 0 ? '<p class="soft">There is nothing in this folder.</p>' : '';
  const all =
    entries.length === 0
      ? ''
      : `<a class="all" href="?${query({ path, zip: '1' })}">Download all as a zip</a>`;
  return page(title, `<h1>${crumbs(title, path)}</h1>${all}${empty}<table>${rows}</table>${more}`);
}

/** For a link that is wrong or has ended. */
export function endedPage(): string {
  const words =
    'The link is wrong or incomplete, or has ended. Ask the person who sent you the link for a new one.';
  return page('Link ended', `<h1>This link does not work</h1><p>${words}</p>`);
}

function rowOf({ kind, name, object }: BucketEntry, path: string): string {
  const ownName = name.slice(parentLength(name));
  const shown = escapeHtml(ownName === '' ? name : ownName);
  const link = `<a href="?${query({ path: path + ownName })}">${shown}</a>`;
  if (kind === 'folder' || object === null) return `<tr><td>${link}</td><td></td><td></td></tr>`;
  const { size, created_at } = object;
  const when = `<td class="soft">${escapeHtml(created_at)}</td>`;
  return `<tr><td>${link}</td><td class="soft">${formatSize(size)}</td>${when}</tr>`;
}

/** Length of the folder part of a name; a folder's own name ends with "/". */
function parentLength(name: string): number {
  return name.lastIndexOf('/', name.length - 2) + 1;
}

function crumbs(title: string, path: string): string {
  const parts = path.split('/').filter((part) => part !== '');
  if (path === '') return escapeHtml(title);
  const links = [`<a href="?">${escapeHtml(title)}</a>`];
  let end = 0;
  for (const part of parts) {
    end = path.indexOf(`${part}/`, end) + part.length + 1;
    links.push(`<a href="?${query({ path: path.slice(0, end) })}">${escapeHtml(part)}</a>`);
  }
  return links.join(' / ');
}

function query(members: Readonly<Record<string, string>>): string {
  return escapeHtml(new URLSearchParams(members).toString());
}

function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
</head>
<body><main>${body}</main></body>
</html>
`;
}
