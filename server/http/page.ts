/** Self-contained pages: their inline style and script are allowed by hash. */
import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** Content-Security-Policy that allows exactly the `<style>` and `<script>` elements of this page. */
export function pageHeaders(html: string): Record<string, string> {
  const hashes = (tag: string) =>
    [...html.matchAll(new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`, 'g'))].map(
      ([, content]) =>
        `'sha256-${createHash('sha256')
          .update(content as string)
          .digest('base64')}'`,
    );
  const sources = (list: string[]) => (list.length === 0 ? "'none'" : list.join(' '));
  const policy = [
    "default-src 'none'",
    `style-src ${sources(hashes('style'))}`,
    `script-src ${sources(hashes('script'))}`,
    "img-src 'self' data:",
    "connect-src 'self'",
    "object-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return { 'content-security-policy': policy.join('; ') };
}

/** Without an icon Firefox requests `/favicon.ico` and reports that the policy blocks it. */
export const PAGE_ICON = '<link rel="icon" href="/icon.svg" type="image/svg+xml">';

/** Sends a page instead of a route's usual response. `status`: 200, or an error's that people see. */
export function sendPage(
  { responseHeaders, method }: FastifyRequest,
  reply: FastifyReply,
  { html, status }: { readonly html: string; readonly status: number },
): void {
  Object.assign(responseHeaders, pageHeaders(html), {
    'content-type': 'text/html; charset=utf-8',
    'content-length': String(Buffer.byteLength(html)),
  });
  reply.hijack();
  reply.raw.writeHead(status, responseHeaders);
  reply.raw.end(method === 'HEAD' ? undefined : html);
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Text as HTML text or attribute value. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] as string);
}

/** The style all pages share, in the colours of the console; follows the light or dark preference. */
export const PAGE_STYLE = `
:root { color-scheme: light dark; --text: light-dark(#1d1c1b, #e6e4df); --soft: light-dark(#625d54, #aaa69d);
  --line: light-dark(#d8d5ce, #45433f); --ground: light-dark(#fff, #1d1c1b); --raised: light-dark(#faf9f7, #161514);
  --accent: light-dark(#0f5f5c, #75c1b8); --button: light-dark(#0f5f5c, #14776e); }
* { box-sizing: border-box; }
body { margin: 0; font: 15px/1.55 system-ui, sans-serif; color: var(--text); background: var(--ground); }
main { max-width: 60rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; } h2 { margin-top: 2.5rem; } a { color: var(--accent); }
code, pre { font: .875rem/1.5 ui-monospace, monospace; }
pre { background: var(--raised); border: 1px solid var(--line); border-radius: 8px; padding: .75rem; overflow-x: auto; }
.soft { color: var(--soft); }
`;
