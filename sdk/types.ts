/** Parameters and results of the client's methods beyond the schemas of the API. */
import type { Operation } from '../build/sdk/schema.d.ts';

/** Bytes of the body that were sent, and how many there are. */
export type ProgressListener = (sentBytes: number, totalBytes: number) => void;

/** The last argument of every call. */
export interface CallOptions {
  /** Ends the call, which rejects with its reason. `AbortSignal.timeout(ms)` limits the time of a call. */
  readonly signal?: AbortSignal | undefined;
  /** A change that is sent again with the same key within 24 hours has one effect. */
  readonly idempotencyKey?: string | undefined;
  /** For a POST, PATCH or DELETE that may take long: the cloud works on it while this asks for its end. */
  readonly takesLong?: boolean | undefined;
  /** Called about every second while a call with `takesLong` runs. `cancelOperation` takes its id. */
  readonly onOperation?: ((operation: Operation) => void) | undefined;
}

export interface UploadOptions extends CallOptions {
  /** Only browsers tell the progress of an upload; a `fetch` of your own does not. */
  readonly onProgress?: ProgressListener | undefined;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** For the next page; null when this was the last. */
  readonly cursor: string | null;
}

/** A list that is read page by page, or as a whole: `for await (const bucket of cloud.listBuckets())`. */
export interface Pages<T> extends AsyncIterable<T> {
  /** The first page, or the one after `cursor`; at most `limit` entries (default 100). */
  page(options?: { cursor?: string | undefined; limit?: number }): Promise<Page<T>>;
  /** Everything in one array. */
  all(): Promise<T[]>;
}
