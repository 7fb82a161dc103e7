/**
 * What the domains need of the way to the outside: HTTP requests to addresses that strangers name. Nothing
 * inside (this host, its networks, the cloud's own services) may be reached by them.
 */

export interface OutboundRequest {
  /** `http:` or `https:`, without credentials. */
  readonly url: string;
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** More than this in the response ends it with an error. */
  readonly maxBytes: number;
  /** For the whole of it, ms. */
  readonly totalMs: number;
  readonly signal?: AbortSignal;
}

export interface OutboundResponse {
  readonly status: number;
  /** The `Retry-After` header as it came; null: none. */
  readonly retryAfter: string | null;
  /** As announced; null: not announced. */
  readonly length: number | null;
  /** Must be read to its end or left by `return`. Throws OutboundRefused. */
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** Why a request was not made, or broke off; in words for the one who named the address. */
export class OutboundRefused extends Error {
  /** `forbidden`: an address that may not be reached; `invalid`: the URL; `failed`: the other side. */
  readonly kind: 'forbidden' | 'invalid' | 'failed';

  constructor(kind: OutboundRefused['kind'], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.kind = kind;
  }
}

export interface Outbound {
  /**
   * Rejects with OutboundRefused `forbidden` or `invalid` when a request to `url` would be, as far as is
   * known now. A name that is not found, or not soon, passes: it may be by the time of the request.
   */
  assertAllowed(url: string): Promise<void>;
  /** Follows redirects of a GET. Resolves when the response begins. Rejects with OutboundRefused. */
  fetch(request: OutboundRequest): Promise<OutboundResponse>;
}
