/**
 * Signed links: a link lets anyone read one object without an API key, as long as the key that
 * created it has access. The signature is HMAC-SHA256 over object, version, key and expiry under a
 * secret of this cloud. A link created in a session counts as created with the account's own key.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Principal } from '../../calls/principal.ts';
import type { Awaitable } from '../../metadata/metadata.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError, isAppError } from '../../platform/errors.ts';
import { notFound } from './objects.ts';

export interface LinkTarget {
  readonly objectId: string;
  /** Absent: the object's current bytes at the time of the request. */
  readonly versionId?: string | undefined;
}

export interface LinkQuery {
  readonly version_id?: string | undefined;
  /** The key that created the link. */
  readonly key_id?: string | undefined;
  /** Seconds since 1970. */
  readonly expires?: number | undefined;
  readonly signature?: string | undefined;
}

/** The keys that create links. */
export interface LinkKeys {
  /** The id of an account's own current key. */
  currentId(accountId: number): Promise<string | undefined>;
  /**
   * The holder of a key, by its id; recently used keys come from memory. Throws or rejects with
   * `invalid_api_key` if the key has ended, `account_suspended`.
   */
  holderOf(keyId: string): Awaitable<Principal>;
}

export interface LinksDeps {
  readonly secret: Uint8Array;
  readonly clock: Clock;
  readonly keys: LinkKeys;
}

interface Signed {
  readonly target: LinkTarget;
  readonly keyId: string;
  readonly expires: number;
}

export class Links {
  readonly #deps: LinksDeps;

  constructor(deps: LinksDeps) {
    this.#deps = deps;
  }

  /**
   * The query of a link that works for `seconds` from now, or until the caller's key ends, if that is sooner;
   * `expiresAt` in ms. Throws `scope_required` for a session of an account without a key.
   */
  async sign(
    principal: Principal,
    target: LinkTarget,
    seconds: number,
  ): Promise<{ query: string; expiresAt: number }> {
    const keyId = await this.#keyOf(principal);
    const end = Math.floor((principal.keyExpiresAt ?? Number.POSITIVE_INFINITY) / 1000);
    const expires = Math.min(this.#seconds() + seconds, end);
    const version = target.versionId === undefined ? '' : `version_id=${target.versionId}&`;
    const signature = this.#signature({ target, keyId, expires });
    const query = `${version}key_id=${keyId}&expires=${expires}&signature=${signature}`;
    return { query, expiresAt: expires * 1000 };
  }

  /**
   * The holder of the link's key, and the seconds left. Throws `invalid_link` unless the query was made by
   * sign() for this object, has not expired, and its key has not ended; `object_not_found` if the account is
   * suspended.
   */
  async check(objectId: string, query: LinkQuery): Promise<{ holder: Principal; secondsLeft: number }> {
    const { version_id: versionId, key_id: keyId = '', expires = 0, signature = '' } = query;
    const given = Buffer.from(signature);
    const right = Buffer.from(this.#signature({ target: { objectId, versionId }, keyId, expires }));
    if (given.length !== right.length || !timingSafeEqual(given, right)) {
      throw new AppError('invalid_link', 'The link is invalid or incomplete');
    }
    const secondsLeft = expires - this.#seconds();
    if (secondsLeft <= 0) throw ended('The link has expired');
    try {
      return { holder: await this.#deps.keys.holderOf(keyId), secondsLeft };
    } catch (error) {
      if (isAppError(error, 'invalid_api_key'))
        throw ended('The key that created this link is no longer valid');
      if (isAppError(error, 'account_suspended')) throw notFound(objectId);
      throw error;
    }
  }

  async #keyOf({ via, accountId, credentialId }: Principal): Promise<string> {
    const keyId = via === 'session' ? await this.#deps.keys.currentId(accountId) : credentialId;
    if (keyId === undefined)
      throw new AppError('scope_required', 'The account has no API key to create a link with');
    return keyId;
  }

  #seconds(): number {
    return Math.floor(this.#deps.clock.now() / 1000);
  }

  #signature({ target: { objectId, versionId }, keyId, expires }: Signed): string {
    return createHmac('sha256', this.#deps.secret)
      .update(`link\n${objectId}\n${versionId ?? ''}\n${keyId}\n${expires}`)
      .digest('base64url');
  }
}

function ended(detail: string): AppError {
  return new AppError('invalid_link', detail, { hint: 'Ask the owner for a new link' });
}
