/**
 * Serves the console: static files that the build puts into build/console, each with its compressed
 * forms, and one page for all addresses of the console.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { FastifyReply, FastifyRequest } from 'fastify';
import mime from 'mime';
import { randomSecret } from '../platform/ids.ts';
import { varyOn } from './origins.ts';

/** Files with a content hash in their names. */
const ASSETS = '/assets/';
const ENCODINGS = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const;
/** Placeholder in the built page that each response replaces with its nonce. */
const NONCE_MARK = 'CSP_NONCE';

export interface ConsoleFilesDeps {
  /** build/console. */
  readonly folder: string;
  /** URL of the data origin, from which previews are loaded. */
  readonly dataUrl: () => string;
}

export class ConsoleFiles {
  readonly #deps: ConsoleFilesDeps;
  readonly #names: ReadonlySet<string>;
  readonly #page: string | null;

  constructor(deps: ConsoleFilesDeps) {
    this.#deps = deps;
    this.#names = new Set(filesIn(deps.folder));
    this.#page = this.#names.has('index.html') ? readFileSync(join(deps.folder, 'index.html'), 'utf8') : null;
  }

  /** Whether the console is built. */
  get isBuilt(): boolean {
    return this.#page !== null;
  }

  /** Path of the library for the API reference; undefined: the console is not built. */
  get referenceLibrary(): string | undefined {
    const name = [...this.#names].find((each) => /^assets\/scalar-\w+\.js$/.test(each));
    return name === undefined ? undefined : `/${name}`;
  }

  /**
   * Serves a GET without a route: a file of the console, or the page when a browser opens an
   * address. False: neither.
   */
  answer(request: FastifyRequest, reply: FastifyReply): boolean {
    const { method, headers } = request;
    if (this.#page === null || (method !== 'GET' && method !== 'HEAD')) return false;
    const path = request.url.split('?', 1)[0] ?? '';
    const name = path.slice(1);
    if (this.#names.has(name) && name !== 'index.html') {
      this.#sendFile(name, request, reply);
      return true;
    }
    if (path.startsWith(ASSETS) || headers.accept?.includes('text/html') !== true) return false;
    this.sendPage(request, reply);
    return true;
  }

  /** Call only if isBuilt. */
  sendPage({ responseHeaders, method }: FastifyRequest, reply: FastifyReply): void {
    const nonce = randomSecret(16).toString('base64');
    const html = (this.#page ?? '').replaceAll(NONCE_MARK, nonce);
    Object.assign(responseHeaders, {
      'content-security-policy': policy(nonce, this.#deps.dataUrl()),
      'content-type': 'text/html; charset=utf-8',
      'content-length': String(Buffer.byteLength(html)),
    });
    varyOn(responseHeaders, 'Accept');
    reply.hijack();
    reply.raw.writeHead(200, responseHeaders);
    reply.raw.end(method === 'HEAD' ? undefined : html);
  }

  #sendFile(name: string, request: FastifyRequest, reply: FastifyReply): void {
    const { responseHeaders, headers, method } = request;
    const accepted = String(headers['accept-encoding'] ?? '');
    const packed = ENCODINGS.find(
      ([encoding, ending]) => accepted.includes(encoding) && this.#names.has(name + ending),
    );
    responseHeaders['content-type'] = mime.getType(name) ?? 'application/octet-stream';
    responseHeaders['cache-control'] = `/${name}`.startsWith(ASSETS)
      ? 'public, max-age=31536000, immutable'
      : 'no-cache';
    varyOn(responseHeaders, 'Accept-Encoding');
    if (packed !== undefined) responseHeaders['content-encoding'] = packed[0];
    reply.hijack();
    readFile(join(this.#deps.folder, name + (packed?.[1] ?? ''))).then(
      (bytes) => {
        responseHeaders['content-length'] = String(bytes.length);
        reply.raw.writeHead(200, responseHeaders);
        reply.raw.end(method === 'HEAD' ? undefined : bytes);
      },
      // The file was replaced by a new build.
      () => reply.raw.destroy(),
    );
  }
}

function filesIn(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1));
  } catch {
    return [];
  }
}

/**
 * No inline script, and no requests to other hosts than the data origin. Styles that components create at run
 * time carry the nonce of the page.
 */
function policy(nonce: string, dataUrl: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    `img-src 'self' data: blob: ${dataUrl}`,
    `media-src 'self' blob: ${dataUrl}`,
    // 'self': the API reference.
    `frame-src 'self' ${dataUrl}`,
    "connect-src 'self'",
    "font-src 'self'",
    "object-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}
