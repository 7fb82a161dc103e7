/** Serves the client at /cli/cloudlet.tgz, for `npm install --global http://HOST:8080/cli/cloudlet.tgz`. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { FastifyReply, FastifyRequest } from 'fastify';

const PATH = '/cli/cloudlet.tgz';

interface Package {
  readonly bytes: Buffer;
  readonly etag: string;
}

export class ClientPackage {
  readonly #file: string;
  #read: Package | null | undefined;

  /** `file`: built by scripts/build-cli.ts; where it is missing, the path belongs to nothing. */
  constructor(file: string) {
    this.#file = file;
  }

  /** Serves a GET of the package. False: another path, or it is not built. */
  answer({ url, method, headers, responseHeaders }: FastifyRequest, reply: FastifyReply): boolean {
    if (url.split('?', 1)[0] !== PATH || (method !== 'GET' && method !== 'HEAD')) return false;
    // It is read once: a build that replaces it comes with sources for which the cloud starts again.
    this.#read ??= readPackage(this.#file);
    if (this.#read === null) return false;
    const { bytes, etag } = this.#read;
    Object.assign(responseHeaders, {
      'content-type': 'application/gzip',
      'content-disposition': 'attachment; filename="cloudlet.tgz"',
      'cache-control': 'no-cache',
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
}

function readPackage(file: string): Package | null {
  try {
    const bytes = readFileSync(file);
    const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 22);
    return { bytes, etag: `"${hash}"` };
  } catch {
    return null;
  }
}
