/** Parameters and results of the client's methods, besides the API's schemas. */
import type { Operation } from '../build/sdk/schema.d.ts';

/** Bytes sent and total bytes of the body. */
export type ProgressListener = (sentBytes: number, totalBytes: number) => void;

/** The last argument of every call. */
export interface CallOptions {
  /**
   * Aborts the call, which rejects with its reason. `AbortSignal.timeout(ms)` limits the duration
   * of a call.
   */
  readonly signal?: AbortSignal | undefined;
  /** A change repeated with the same key within 24 hours takes effect once. */
  readonly idempotencyKey?: string | undefined;
  /**
   * For a POST, PATCH or DELETE that may take long: the cloud runs it as an operation while the
   * client waits for its end.
   */
  readonly takesLong?: boolean | undefined;
  /** Bytes of a download, as in the header `Range`: `bytes=0-99`. */
  readonly range?: string | undefined;
  /** Called about every second while a call with `takesLong` runs. The id is for `cancelOperation`. */
  readonly onOperation?: ((operation: Operation) => void) | undefined;
}

export interface UploadOptions extends CallOptions {
  /** Only available in browsers, and not with your own `fetch`. */
  readonly onProgress?: ProgressListener | undefined;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** For the next page; null: this is the last page. */
  readonly cursor: string | null;
}

/** A list that is read page by page, or as a whole: `for await (const bucket of cloud.listBuckets())`. */
export interface Pages<T> extends AsyncIterable<T> {
  /** The first page, or the one after `cursor`; at most `limit` entries (default 100). */
  page(options?: { cursor?: string | undefined; limit?: number }): Promise<Page<T>>;
  /** All entries in one array. */
  all(): Promise<T[]>;
}
