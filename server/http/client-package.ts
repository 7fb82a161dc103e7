/**
 * Serves the client at /cli/cloudlet.tgz, for `npm install --global https://HOST/cli/cloudlet.tgz`, and its
 * SHA-256 beside it. Npm checks nothing of a package by address: over http anybody on the way could give the
 * user another program, so beyond this host it is served by https alone.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AppError } from '../platform/errors.ts';
import { isLoopback } from './origins.ts';

const PATH = '/cli/cloudlet.tgz';
const HASH_PATH = `${PATH}.sha256`;

interface Package {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly sha256: Buffer;
}

export class ClientPackage {
  readonly #file: string;
  readonly #publicUrl: string;
  #read: Package | null | undefined;

  /**
   * `file`: built by scripts/build-cli.ts; where it is missing, the path belongs to nothing. `publicUrl`: by
   * which users reach the API through a proxy; empty: they reach it as it listens.
   */
  constructor({ file, publicUrl }: { readonly file: string; readonly publicUrl: string }) {
    this.#file = file;
    this.#publicUrl = publicUrl;
  }

  /**
   * Serves a GET of the package. False: another path, or it is not built. Throws `https_required` when it
   * would go over a network in the clear.
   */
  answer(request: FastifyRequest, reply: FastifyReply): boolean {
    const { url, method, headers, responseHeaders } = request;
    const path = url.split('?', 1)[0];
    if ((path !== PATH && path !== HASH_PATH) || (method !== 'GET' && method !== 'HEAD')) return false;
    // It is read once: a build that replaces it comes with sources for which the cloud starts again.
    this.#read ??= readPackage(this.#file);
    if (this.#read === null) return false;
    if (!this.#isSafe(request.raw.socket.remoteAddress ?? '')) throw insecure();
    const { bytes, etag, sha256 } = this.#read;
    if (path === HASH_PATH) {
      const headers = { ...responseHeaders, 'content-type': 'text/plain; charset=utf-8' };
      const line = `${sha256.toString('hex')}  cloudlet.tgz\n`;
      reply.hijack();
      reply.raw.writeHead(200, headers).end(method === 'HEAD' ? undefined : line);
      return true;
    }
    Object.assign(responseHeaders, {
      'content-type': 'application/gzip',
      'content-disposition': 'attachment; filename="cloudlet.tgz"',
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

  /** Through a proxy with TLS, or from this host alone. */
  #isSafe(remoteAddress: string): boolean {
    if (this.#publicUrl === '') return isLoopback(remoteAddress);
    const { protocol, hostname } = new URL(this.#publicUrl);
    return protocol === 'https:' || hostname === 'localhost' || isLoopback(hostname.replace(/^\[|\]$/g, ''));
  }
}

function insecure(): AppError {
  return new AppError('https_required', 'The client is served over http only to this host', {
    hint: 'Ask the operator for https (deploy/Caddyfile), or copy build/cli/cloudlet.tgz from the server',
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
