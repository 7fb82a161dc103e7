/**
 * Serves the client at /cli/cloudlet.tgz and the SDK at /sdk/cloudlet-sdk.tgz, for `npm install
 * https://HOST/…`, and the SHA-256 of each beside it. Npm does not verify packages installed from a
 * URL, so an attacker on the network could replace them over HTTP: other hosts get them over HTTPS
 * only.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AppError } from '../platform/errors.ts';
import { ROOT } from '../platform/program-files.ts';
import type { StaticFiles } from './edge.ts';
import { isLoopback } from './origins.ts';

/** The built packages, by path. */
const PACKAGES = {
  '/cli/cloudlet.tgz': join(ROOT, 'build/cli/cloudlet.tgz'),
  '/sdk/cloudlet-sdk.tgz': join(ROOT, 'build/cli/cloudlet-sdk.tgz'),
};
const HASH = '.sha256';

interface Package {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly sha256: Buffer;
}

export class Packages {
  readonly #files: Readonly<Record<string, string>>;
  readonly #publicUrl: string;
  readonly #read = new Map<string, Package | null>();

  /**
   * `files`: built by scripts/build-cli.ts, by path; a missing file is not served. `publicUrl`: URL
   * of the API behind a proxy; empty: there is no proxy.
   */
  constructor(deps: { readonly files: Readonly<Record<string, string>>; readonly publicUrl: string }) {
    this.#files = deps.files;
    this.#publicUrl = deps.publicUrl;
  }

  /**
   * Serves a GET of a package. False: another path, or the package is not built. Throws
   * `https_required` if it would cross a network unencrypted.
   */
  answer(request: FastifyRequest, reply: FastifyReply): boolean {
    const { url, method, headers, responseHeaders } = request;
    const path = url.split('?', 1)[0] ?? '';
    const name = path.endsWith(HASH) ? path.slice(0, -HASH.length) : path;
    if (!Object.hasOwn(this.#files, name) || (method !== 'GET' && method !== 'HEAD')) return false;
    const found = this.#package(name);
    if (found === null) return false;
    if (!this.#isSafe(request.raw.socket.remoteAddress ?? '')) throw insecure();
    const { bytes, etag, sha256 } = found;
    const fileName = basename(name);
    if (path !== name) {
      const headers = { ...responseHeaders, 'content-type': 'text/plain; charset=utf-8' };
      const line = `${sha256.toString('hex')}  ${fileName}\n`;
      reply.hijack();
      reply.raw.writeHead(200, headers).end(method === 'HEAD' ? undefined : line);
      return true;
    }
    Object.assign(responseHeaders, {
      'content-type': 'application/gzip',
      'content-disposition': `attachment; filename="${fileName}"`,
      'cache-control': 'no-cache',
      'repr-digest': `sha-256=:${sha256.toString('base64')}:`,
      etag,
    });
    reply.hijack();
    if (headers['if-none-match'] === etag) {
      reply.raw.writeHead(304, responseHeaders).end();
      return true;
    }
    responseHeaders['content-length'] = String(bytes.length);
    reply.raw.writeHead(200, responseHeaders).end(method === 'HEAD' ? undefined : bytes);
    return true;
  }

  /** Read once: a new build comes with new sources, which restart the cloud. */
  #package(name: string): Package | null {
    const known = this.#read.get(name);
    if (known !== undefined) return known;
    const read = readPackage(this.#files[name] ?? '');
    this.#read.set(name, read);
    return read;
  }

  /** Over a TLS proxy, or from this host. */
  #isSafe(remoteAddress: string): boolean {
    if (this.#publicUrl === '') return isLoopback(remoteAddress);
    const { protocol, hostname } = new URL(this.#publicUrl);
    return protocol === 'https:' || hostname === 'localhost' || isLoopback(hostname.replace(/^\[|\]$/g, ''));
  }
}

function insecure(): AppError {
  return new AppError('https_required', 'Client and SDK are served over http only to this host', {
    hint: 'Ask the operator for https (deploy/Caddyfile), or copy build/cli/*.tgz from the server',
  });
}

function readPackage(file: string): Package | null {
  try {
    const bytes = readFileSync(file);
    const sha256 = createHash('sha256').update(bytes).digest();
    return { bytes, sha256, etag: `"${sha256.toString('base64url').slice(0, 22)}"` };
  } catch {
    return null;
  }
}

/** The built packages, and the pages about them. */
export function withPackages(pages: StaticFiles, publicUrl: string): StaticFiles {
  const packages = new Packages({ files: PACKAGES, publicUrl });
  return { answer: (...call) => packages.answer(...call) || pages.answer(...call) };
}
