/**
 * Signed links: whoever has one may read one object until it expires, without a key. The signature is
 * HMAC-SHA256 over object, version and expiry under a secret of this cloud.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../clock.ts';
import { AppError } from '../errors.ts';

export interface LinkTarget {
  readonly objectId: string;
  /** Absent: the object's current bytes, whatever they are then. */
  readonly versionId?: string | undefined;
}

export interface LinkQuery {
  readonly version_id?: string | undefined;
  /** Seconds since 1970. */
  readonly expires?: number | undefined;
  readonly signature?: string | undefined;
}

export class Links {
  readonly #secret: Uint8Array;
  readonly #clock: Clock;

  constructor(secret: Uint8Array, clock: Clock) {
    this.#secret = secret;
    this.#clock = clock;
  }

  /** The query of a link that works for `seconds` from now; `expiresAt` in ms. */
  sign(target: LinkTarget, seconds: number): { query: string; expiresAt: number } {
    const expires = Math.floor(this.#clock.now() / 1000) + seconds;
    const version = target.versionId === undefined ? '' : `version_id=${target.versionId}&`;
    const signature = this.#signature(target, expires);
    return { query: `${version}expires=${expires}&signature=${signature}`, expiresAt: expires * 1000 };
  }

  /**
   * Throws `invalid_link` unless the query was made by sign() for this object and has not expired. Returns
   * the seconds left.
   */
  check(objectId: string, query: LinkQuery): number {
    const expires = query.expires ?? 0;
    // As text: decoding would pass over what does not belong into it.
    const given = Buffer.from(query.signature ?? '');
    const right = Buffer.from(this.#signature({ objectId, versionId: query.version_id }, expires));
    if (given.length !== right.length || !timingSafeEqual(given, right)) {
      throw new AppError('invalid_link', 'The link was changed or is incomplete');
    }
    const left = expires - Math.floor(this.#clock.now() / 1000);
    if (left <= 0)
      throw new AppError('invalid_link', 'The link has expired', { hint: 'Ask its owner for a new one' });
    return left;
  }

  #signature({ objectId, versionId }: LinkTarget, expires: number): string {
    return createHmac('sha256', this.#secret)
      .update(`link\n${objectId}\n${versionId ?? ''}\n${expires}`)
      .digest('base64url');
  }
}
