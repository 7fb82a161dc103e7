/** Where images are taken from: files of this host that the operator offers, and URLs. */
import { constants } from 'node:fs';
import { type FileHandle, open, realpath } from 'node:fs/promises';
import { sep } from 'node:path';
import { invalidField } from '../../platform/errors.ts';
import { type Outbound, OutboundRefused } from '../../platform/outbound.ts';

/** Bytes to be taken in later. */
export interface ImageSource {
  /** For administrators to read; holds no secret. */
  readonly label: string;
  /**
   * A file of this host as it is read: the holes of a sparse one count, because they are copied like the
   * rest and hashed. null: of a URL, whose size is not known before it is asked.
   */
  readonly bytes: number | null;
  /** At most once. Throws OutboundRefused, AppError, or the signal's reason. */
  open(signal: AbortSignal): AsyncIterable<Uint8Array>;
}

export interface ImageSourcesDeps {
  /** Absolute paths of the folders that files may be taken from. */
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

  /** Throws `invalid_request` unless it is a file in one of the folders. */
  async fromPath(path: string): Promise<ImageSource> {
    const file = await this.#openFile(path);
    try {
      const bytes = (await file.stat()).size;
      return { label: `path ${path}`, bytes, open: (signal) => this.#readFile(path, signal) };
    } finally {
      await file.close();
    }
  }

  /** Throws `invalid_request` when it is no URL to fetch; whether it may be reached is seen later. */
  fromUrl(text: string): ImageSource {
    const url = URL.parse(text);
    if (url === null || !/^https?:$/.test(url.protocol)) {
      throw invalidField('url', 'must be a URL that begins with http:// or https://');
    }
    if (url.username !== '' || url.password !== '') {
      throw invalidField('url', 'must hold no name and password');
    }
    // The query may be a signature, which is as good as a password.
    const label = `url ${url.origin}${url.pathname}`;
    return { label, bytes: null, open: (signal) => this.#download(url.href, signal) };
  }

  /** What was opened is looked at, not what its name pointed at a moment before. */
  async #openFile(path: string): Promise<FileHandle> {
    const { folders } = this.#deps;
    if (folders.length === 0) {
      throw invalidField(
        'path',
        'images are not taken from paths until CLOUDLET_IMAGE_SOURCES names folders',
      );
    }
    const problem = () =>
      invalidField('path', 'must be a file in one of the folders of CLOUDLET_IMAGE_SOURCES');
    if (path.includes('\0') || !(await isInside(path, folders))) throw problem();
    // A pipe must not keep us waiting for its writer.
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
      throw new OutboundRefused('failed', `the other side answered ${status}`);
    }
    let received = 0;
    for await (const piece of bytes) {
      received += piece.length;
      yield piece;
    }
    if (length !== null && received !== length) throw new OutboundRefused('failed', 'it ended too soon');
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
