/**
 * The outbound HTTP client that the domains need: requests to user-supplied addresses, which must not reach
 * anything inside (this host, its networks, the cloud's own services).
 */

export interface OutboundRequest {
  /** `http:` or `https:`, without credentials. */
  readonly url: string;
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** A larger response fails. */
  readonly maxBytes: number;
  /** Timeout of the whole request, ms. */
  readonly totalMs: number;
  readonly signal?: AbortSignal;
  /** False refuses the URL of the request or of a redirect; default: every public URL is allowed. */
  readonly mayAsk?: (url: URL) => boolean;
  /** An origin from the operator's settings: it may be inside the private network. */
  readonly insideOrigin?: string;
}

export interface OutboundResponse {
  readonly status: number;
  /** The `Content-Range` header as received; null: none. */
  readonly contentRange: string | null;
  /** The `Retry-After` header as received; null: none. */
  readonly retryAfter: string | null;
  /** The announced length; null: none. */
  readonly length: number | null;
  /** Must be read to the end, or ended with `return`. Throws OutboundRefused. */
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** Why a request was not sent, or failed; worded for the user who supplied the address. */
export class OutboundRefused extends Error {
  /** `forbidden`: a blocked address; `invalid`: the URL; `failed`: the other side. */
  readonly kind: 'forbidden' | 'invalid' | 'failed';

  constructor(kind: OutboundRefused['kind'], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.kind = kind;
  }
}

export interface Outbound {
  /**
   * Rejects with OutboundRefused `forbidden` or `invalid` if a request to `url` would be refused, as far as
   * is known now. A name that does not resolve in time passes: it may resolve by the time of the request.
   */
  assertAllowed(url: string): Promise<void>;
  /** Follows redirects of a GET. Resolves when the response starts. Rejects with OutboundRefused. */
  fetch(request: OutboundRequest): Promise<OutboundResponse>;
}
