/** Sources of images: files in folders the operator lists, and URLs. */
import { constants } from 'node:fs';
import { type FileHandle, open, realpath } from 'node:fs/promises';
import { sep } from 'node:path';
import { invalidField } from '../../platform/errors.ts';
import { type Outbound, OutboundRefused } from '../../platform/outbound.ts';

/** A source that is read later. */
export interface ImageSource {
  /** Label for administrators; contains no secret. */
  readonly label: string;
  /**
   * Size of a file of this host; holes of a sparse file count, because they are copied and hashed too. null
   * for a URL, whose size is unknown before the request.
   */
  readonly bytes: number | null;
  /** May be called once. Throws OutboundRefused, AppError, or the signal's reason. */
  open(signal: AbortSignal): AsyncIterable<Uint8Array>;
}

export interface ImageSourcesDeps {
  /** Absolute paths of the folders that files may be read from. */
  readonly folders: readonly string[];
  readonly outbound: Outbound;
  readonly maxBytes: number;
}

const PIECE_BYTES = 256 * 1024;
const DOWNLOAD_MS = 4 * 3_600_000;

export class ImageSources {
  readonly #deps: ImageSourcesDeps;

  constructor(deps: ImageSourcesDeps) {
    this.#deps = deps;
  }

  /** Throws `invalid_request` unless the path is a file in one of the folders. */
  async fromPath(path: string): Promise<ImageSource> {
    const file = await this.#openFile(path);
    try {
      const bytes = (await file.stat()).size;
      return { label: `path ${path}`, bytes, open: (signal) => this.#readFile(path, signal) };
    } finally {
      await file.close();
    }
  }

  /** Throws `invalid_request` for an invalid URL; whether it is reachable is found later. */
  fromUrl(text: string): ImageSource {
    const url = URL.parse(text);
    if (url === null || !/^https?:$/.test(url.protocol)) {
      throw invalidField('url', 'must be a URL that begins with http:// or https://');
    }
    if (url.username !== '' || url.password !== '') {
      throw invalidField('url', 'must not contain a user name or password');
    }
    // The query may hold a signature, which is a credential.
    const label = `url ${url.origin}${url.pathname}`;
    return { label, bytes: null, open: (signal) => this.#download(url.href, signal) };
  }

  /** Checks the opened file, because the path may have been replaced. */
  async #openFile(path: string): Promise<FileHandle> {
    const { folders } = this.#deps;
    if (folders.length === 0) {
      throw invalidField('path', 'is not allowed: CLOUDLET_IMAGE_SOURCES lists no folders');
    }
    const problem = () => invalidField('path', 'must be a file in a folder listed in CLOUDLET_IMAGE_SOURCES');
    if (path.includes('\0') || !(await isInside(path, folders))) throw problem();
    // Opening a FIFO must not block until it has a writer.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => null);
    if (file === null) throw problem();
    const stat = await file.stat();
    if (stat.isFile() && (await isInside(`/proc/self/fd/${file.fd}`, folders))) return file;
    await file.close();
    throw problem();
  }

  async *#readFile(path: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const file = await this.#openFile(path);
    try {
      const piece = Buffer.alloc(PIECE_BYTES);
      for (;;) {
        signal.throwIfAborted();
        const { bytesRead } = await file.read(piece, 0, piece.length);
        if (bytesRead === 0) return;
        yield piece.subarray(0, bytesRead);
      }
    } finally {
      await file.close();
    }
  }

  async *#download(url: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const { outbound, maxBytes } = this.#deps;
    const { status, length, bytes } = await outbound.fetch({ url, maxBytes, totalMs: DOWNLOAD_MS, signal });
    if (status !== 200) {
      await bytes[Symbol.asyncIterator]().return?.();
      throw new OutboundRefused('failed', `the server answered ${status}`);
    }
    let received = 0;
    for await (const piece of bytes) {
      received += piece.length;
      yield piece;
    }
    if (length !== null && received !== length)
      throw new OutboundRefused('failed', 'the response ended early');
  }
}

async function isInside(path: string, folders: readonly string[]): Promise<boolean> {
  const real = await realpath(path).catch(() => null);
  if (real === null) return false;
  for (const folder of folders) {
    const root = await realpath(folder).catch(() => null);
    if (root !== null && real.startsWith(root.endsWith(sep) ? root : root + sep)) return true;
  }
  return false;
}
