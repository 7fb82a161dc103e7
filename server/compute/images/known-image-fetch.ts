/**
 * Downloads known images: first the publisher's checksum, then the bytes. After a broken connection or a
 * kill of Cloudlet, the download continues where it stopped. If the checksum of resumed bytes is wrong,
 * they are downloaded once more from the start.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { type Outbound, OutboundRefused, type OutboundRequest } from '../../platform/outbound.ts';
import type { Hypervisor } from '../hypervisor.ts';
import { Staging, type StagingDeps } from './image-staging.ts';
import type { KnownImage } from './known-images.ts';

export interface KnownImageFetchDeps extends StagingDeps {
  readonly hypervisor: Pick<Hypervisor, 'stageImage'>;
  readonly addresses: KnownImageAddresses;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Called about once a second. */
  readonly onProgress: (imageId: string, fetchedBytes: number, totalBytes: number) => Promise<void>;
}

const DOWNLOAD_MS = 4 * 3_600_000;
const SUMS_MS = 60_000;
const MAX_SUMS_BYTES = 2 ** 20;
const PROGRESS_MS = 1000;
/** Maximum requests in a row without new bytes, and of one download in all. */
const MAX_IDLE = 4;
const MAX_REQUESTS = 100;
/** Delay before the second request, ms; it grows with each further one. */
const PAUSE_MS = 1000;

/** Trying again would not help. */
class Final extends OutboundRefused {
  constructor(message: string) {
    super('failed', message);
  }
}

/** The source of known images: their publishers, or the operator's mirror. */
export class KnownImageAddresses {
  readonly outbound: Outbound;
  readonly #mirror: string;

  /** `mirror`: a base URL; empty: the publishers; `off`: no downloads. */
  constructor(outbound: Outbound, mirror: string) {
    this.outbound = outbound;
    this.#mirror = mirror;
  }

  /** Throws `invalid_request` if downloads by name are off. */
  assertOn(): void {
    if (this.#mirror !== 'off') return;
    throw new AppError('invalid_request', 'CLOUDLET_IMAGE_MIRROR is off: no images are downloaded by name', {
      hint: 'Add the image by upload, URL or path instead',
    });
  }

  get hasMirror(): boolean {
    return this.#mirror !== '';
  }

  /** On a mirror each host is a folder, as `wget -x` makes it. */
  of(url: string): string {
    if (this.#mirror === '' || this.#mirror === 'off') return url;
    const { host, pathname } = new URL(url);
    return `${this.#mirror.replace(/\/+$/, '')}/${host}${pathname}`;
  }

  /** Limits of a request for `url` and its redirects. */
  limits({ redirectHosts }: KnownImage, url: string): Pick<OutboundRequest, 'mayAsk' | 'insideOrigin'> {
    if (this.#mirror !== '') {
      const { origin: insideOrigin } = new URL(this.#mirror);
      return { insideOrigin, mayAsk: ({ origin }) => origin === insideOrigin };
    }
    const { host } = new URL(url);
    const isNamed = (name: string) =>
      name === host || redirectHosts.some((one) => (one.startsWith('.') ? name.endsWith(one) : name === one));
    return { mayAsk: ({ protocol, host: name }) => protocol === 'https:' && isNamed(name) };
  }
}

export class KnownImageFetch {
  readonly #deps: KnownImageFetchDeps;

  constructor(deps: KnownImageFetchDeps) {
    this.#deps = deps;
  }

  /**
   * Stages the image and verifies the publisher's checksum. Resolves with the SHA-256. Throws
   * OutboundRefused, `out_of_space`, `engine_unavailable`, or the signal's reason.
   */
  async run(imageId: string, known: KnownImage, signal: AbortSignal): Promise<string> {
    this.#deps.addresses.assertOn();
    const wanted = await this.#wantedSum(known, signal);
    for (let resume = true; ; resume = false) {
      const found = await this.#stage(imageId, known, { resume, signal });
      if (found.sum === wanted) return found.sha256;
      if (found.keptBytes > 0 && resume) continue;
      if (!found.isWhole)
        throw new Final('the response ended early, and the server does not support resuming');
      throw wrongSum(known, { found: found.sum, wanted });
    }
  }

  async #wantedSum(known: KnownImage, signal: AbortSignal): Promise<string> {
    const { sum, algorithm } = known;
    if ('pinned' in sum) return sum.pinned;
    const { addresses } = this.#deps;
    const url = addresses.of(sum.url);
    const words = (message: string) => `the publisher's checksums, ${url}: ${message}`;
    try {
      const limits = addresses.limits(known, url);
      const request = { url, ...limits, maxBytes: MAX_SUMS_BYTES, totalMs: SUMS_MS, signal };
      const { status, bytes } = await addresses.outbound.fetch(request);
      const pieces: Uint8Array[] = [];
      for await (const piece of bytes) pieces.push(piece);
      if (status !== 200) throw new Final(`the server answered ${status}`);
      const fileName = new URL(known.url).pathname.split('/').at(-1) ?? '';
      const found = sumIn(Buffer.concat(pieces).toString('utf8'), fileName, algorithm);
      if (found === null) throw new Final(`it contains no ${algorithm.toUpperCase()} of ${fileName}`);
      return found;
    } catch (error) {
      if (error instanceof OutboundRefused)
        throw new OutboundRefused(error.kind, words(error.message), error);
      throw error;
    }
  }

  async #stage(imageId: string, known: KnownImage, how: { resume: boolean; signal: AbortSignal }) {
    const { hypervisor, assertSpace, maxBytes } = this.#deps;
    const { algorithm } = known;
    const opened = await hypervisor.stageImage(imageId, { resume: how.resume });
    const stage = new Staging(imageId, opened, { assertSpace, maxBytes, algorithm });
    try {
      await stage.takeKept(how.signal);
      const keptBytes = stage.bytes;
      const isWhole = await this.#fill(stage, known, how.signal);
      return {
        isWhole,
        keptBytes: isWhole ? keptBytes : stage.bytes,
        sum: stage.sum(algorithm),
        sha256: stage.sum('sha256'),
      };
    } finally {
      await stage.close();
    }
  }

  /** False when the server has other bytes than the staged ones: the download must start over. */
  async #fill(stage: Staging, known: KnownImage, signal: AbortSignal): Promise<boolean> {
    let idle = 0;
    for (let requests = 1; ; requests++) {
      const before = stage.bytes;
      try {
        return await this.#request(stage, known, signal);
      } catch (error) {
        const mayPass =
          error instanceof OutboundRefused && !(error instanceof Final) && error.kind === 'failed';
        idle = stage.bytes > before ? 1 : idle + 1;
        if (!mayPass || stage.bytes === 0 || idle >= MAX_IDLE || requests >= MAX_REQUESTS) throw error;
        await sleep(PAUSE_MS * idle, undefined, { signal });
      }
    }
  }

  async #request(stage: Staging, known: KnownImage, signal: AbortSignal): Promise<boolean> {
    const { addresses, maxBytes, assertSpace } = this.#deps;
    const from = stage.bytes;
    const url = addresses.of(known.url);
    const headers: Record<string, string> = from === 0 ? {} : { range: `bytes=${from}-` };
    const limits = addresses.limits(known, url);
    const { outbound } = addresses;
    const { bytes, ...answer } = await outbound.fetch({
      ...limits,
      url,
      headers,
      maxBytes,
      totalMs: DOWNLOAD_MS,
      signal,
    });
    const end = () => bytes[Symbol.asyncIterator]().return?.();
    try {
      if (answer.status === 404 || answer.status === 410)
        throw gone(url, { status: answer.status, hasMirror: addresses.hasMirror });
      const totalBytes = totalOf(answer, from);
      if (totalBytes === null) {
        await end();
        return false;
      }
      // The converted image takes about as much space again, until the source is removed.
      assertSpace(2 * totalBytes - from);
      await this.#take(stage, bytes, totalBytes);
      return true;
    } finally {
      await end();
    }
  }

  async #take(stage: Staging, bytes: AsyncIterable<Uint8Array>, totalBytes: number): Promise<void> {
    const { clock, onProgress } = this.#deps;
    await onProgress(stage.imageId, stage.bytes, totalBytes);
    let toldAt = clock.monotonic();
    for await (const piece of bytes) {
      if (stage.bytes + piece.length > totalBytes)
        throw new Final('the server sent more bytes than it announced');
      await stage.write(piece);
      if (clock.monotonic() - toldAt < PROGRESS_MS) continue;
      await onProgress(stage.imageId, stage.bytes, totalBytes);
      toldAt = clock.monotonic();
    }
    if (stage.bytes < totalBytes) throw new OutboundRefused('failed', 'the response ended early');
    await onProgress(stage.imageId, totalBytes, totalBytes);
  }
}

/** The checksum in our list is as old as this Cloudlet; those of publishers are current. */
function wrongSum(
  { sum, algorithm }: KnownImage,
  of: { readonly found: string; readonly wanted: string },
): Final {
  const isOurs = 'pinned' in sum;
  const whose = isOurs ? 'in the list of this Cloudlet' : 'as its publisher says';
  const more = isOurs
    ? 'if the publisher has replaced the file, use a newer Cloudlet, or add the image by URL with its checksum'
    : 'if the publisher is just replacing the file, fetch it again later';
  return new Final(
    `the image has the ${algorithm.toUpperCase()} ${of.found}, not ${of.wanted} ${whose}; ${more}`,
  );
}

function gone(
  url: string,
  { status, hasMirror }: { readonly status: number; readonly hasMirror: boolean },
): Final {
  const more = hasMirror
    ? 'the mirror must contain it'
    : 'the publisher may have moved it: use a newer Cloudlet, or add the image by URL';
  return new Final(`the server answered ${status} for ${url}; ${more}`);
}

interface Answer {
  readonly status: number;
  readonly length: number | null;
  readonly contentRange: string | null;
}

/** Size of the whole image; null: the server does not continue at `from`. */
function totalOf({ status, length, contentRange }: Answer, from: number): number | null {
  if (from > 0 && (status === 200 || status === 416)) return null;
  if (status === 200 && length !== null) return length;
  if (status === 200) throw new Final('the server does not say how large the image is');
  const [, start, total] = /^bytes (\d{1,15})-\d{1,15}\/(\d{1,15})$/.exec(contentRange ?? '') ?? [];
  if (status === 206 && from > 0 && Number(start) === from) return Number(total);
  throw new Final(`the server answered ${status}`);
}

/**
 * The checksum of a file in a publisher's list: `sum  name` and `sum *name` of coreutils, `SHA256 (name) =
 * sum` of BSD, or the sum alone. null: none, or two different ones.
 */
export function sumIn(text: string, fileName: string, algorithm: 'sha256' | 'sha512'): string | null {
  const digits = algorithm === 'sha256' ? 64 : 128;
  const isSum = (word: string) => word.length === digits && /^[0-9a-f]+$/i.test(word);
  const lines = text.split('\n').map((line) => line.trim());
  const bsd = `${algorithm.toUpperCase()} (${fileName}) = `;
  const found = new Set<string>();
  for (const line of lines) {
    const [first = '', second] = line.split(/\s+\*?/);
    const isAlone = second === undefined && lines.filter((one) => one !== '').length === 1;
    if (line.startsWith(bsd) && isSum(line.slice(bsd.length)))
      found.add(line.slice(bsd.length).toLowerCase());
    else if (isSum(first) && (second === fileName || isAlone)) found.add(first.toLowerCase());
  }
  const [sum] = found;
  return found.size === 1 && sum !== undefined ? sum : null;
}
