/**
 * Logins that a device requested with a short code (RFC 8628), until they are decided and fetched. They are
 * rows, so that one node may approve them and another deliver them. Requests need no credential, so a network
 * with too many requests displaces only its own.
 */
import type { Scope } from '../../calls/principal.ts';
import type { Room, ShortTokens } from '../../calls/short-tokens.ts';
import type { Statement } from '../../metadata/metadata.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { sourceOf } from '../../platform/host/caller-networks.ts';
import { randomSecret } from '../../platform/ids.ts';
import { hashSecret } from '../keys/api-key-text.ts';

/** Lifetime of a code. */
export const DEVICE_CODE_MS = 10 * 60_000;
/** Initial minimum time between two polls; RFC 8628 §3.5 adds as much for each early poll. */
export const POLL_INTERVAL_MS = 5000;
/** 20 letters without vowels, so that codes spell no words, and none resembles a digit (RFC 8628 §6.1). */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';
/** 20^8, about 2^34. */
const CODE_LENGTH = 8;
const MAX_ALL = 2000;
/** Many callers may share the address of a proxy that is not trusted. */
const MAX_PER_SOURCE = 500;

/** A login request of a device. */
export interface DeviceRequest {
  /** Name of the future key. */
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** The device's address. */
  readonly address: string;
}

export interface DeviceLogin extends DeviceRequest {
  readonly userCode: string;
  /** Wall time, ms. */
  readonly createdAt: number;
}

/** The content of its row. */
interface Content<Grant> extends DeviceRequest {
  readonly decision?: 'refused' | Grant;
}

interface Found {
  readonly hash: string;
  /** The row's content, unchanged. */
  readonly text: string;
  readonly login: DeviceLogin;
}

/** When a device may poll again. */
interface Pace {
  /** Monotonic time. */
  polledAt: number;
  intervalMs: number;
}

export interface DeviceLoginsDeps {
  readonly tokens: ShortTokens;
  readonly clock: Clock;
  readonly maxAll?: number;
  readonly maxPerSource?: number;
}

export class DeviceLogins<Grant> {
  readonly #deps: DeviceLoginsDeps;
  /** Keyed by the hash of the device code, least recently polled first. */
  readonly #paces = new Map<string, Pace>();

  constructor(deps: DeviceLoginsDeps) {
    this.#deps = deps;
  }

  /** Creates codes. If the address has too many open codes, its oldest one is removed. */
  async begin(request: DeviceRequest): Promise<{ readonly deviceCode: string; readonly userCode: string }> {
    const { tokens } = this.#deps;
    const content: Content<Grant> = request;
    const login = {
      kind: 'device',
      owner: sourceOf(request.address),
      content: JSON.stringify(content),
      lifeMs: DEVICE_CODE_MS,
    } as const;
    for (;;) {
      const [deviceCode, userCode] = [randomSecret(32).toString('base64url'), newUserCode()];
      const hashes = { hash: hashSecret(deviceCode), otherHash: hashSecret(userCode) };
      if (await tokens.add({ ...login, ...hashes }, this.#room)) return { deviceCode, userCode };
    }
  }

  /** The undecided login of a typed code: case and dash do not matter. */
  async undecided(typed: string): Promise<DeviceLogin | undefined> {
    return (await this.#undecided(typed))?.login;
  }

  /** Decides once, with `also` in the same commit; false: no undecided login has this code. */
  async decide(
    typed: string,
    decision: 'refused' | Grant,
    also: readonly Statement[] = [],
  ): Promise<boolean> {
    const found = await this.#undecided(typed);
    if (found === undefined) return false;
    const { hash, text } = found;
    const decided: Content<Grant> = { ...JSON.parse(text), decision };
    return this.#deps.tokens.change(
      { kind: 'device', hash },
      { was: text, becomes: JSON.stringify(decided), also },
    );
  }

  /**
   * The grant, once: the code is used up. Rejects with `authorization_pending`, `slow_down` (polled
   * before the interval was over), `access_denied`, and `invalid_grant` for a code that is unknown,
   * used or expired.
   */
  async poll(deviceCode: string): Promise<Grant> {
    const { tokens } = this.#deps;
    const name = { kind: 'device', hash: hashSecret(deviceCode) } as const;
    const row = await tokens.find(name);
    if (row === undefined) throw unknownCode();
    const { intervalMs } = this.#keepPace(name.hash);
    const { decision }: Content<Grant> = JSON.parse(row.content);
    if (decision === undefined) {
      throw new AppError('authorization_pending', 'The log-in with this code is not approved yet', {
        retryAfterSeconds: intervalMs / 1000,
      });
    }
    if (!(await tokens.take(name))) throw unknownCode();
    this.#paces.delete(name.hash);
    if (decision === 'refused') throw new AppError('access_denied', 'The log-in was refused');
    return decision;
  }

  /** Throws `slow_down`. Each node counts only its own polls; ended codes are removed. */
  #keepPace(hash: string): Pace {
    const now = this.#deps.clock.monotonic();
    const known = this.#paces.get(hash);
    const pace = { polledAt: now, intervalMs: known?.intervalMs ?? POLL_INTERVAL_MS };
    const isEarly = known !== undefined && now - known.polledAt < known.intervalMs;
    if (isEarly) pace.intervalMs += POLL_INTERVAL_MS;
    this.#paces.delete(hash);
    this.#paces.set(hash, pace);
    for (const [other, { polledAt }] of this.#paces) {
      if (now - polledAt < DEVICE_CODE_MS) break;
      this.#paces.delete(other);
    }
    if (!isEarly) return pace;
    const seconds = pace.intervalMs / 1000;
    throw new AppError('slow_down', `Polled too soon; wait ${seconds} s`, { retryAfterSeconds: seconds });
  }

  async #undecided(typed: string): Promise<Found | undefined> {
    const userCode = plainCode(typed);
    const row = await this.#deps.tokens.findByOther(hashSecret(userCode));
    if (row === undefined) return undefined;
    const { decision, ...request }: Content<Grant> = JSON.parse(row.content);
    if (decision !== undefined) return undefined;
    const login = { ...request, userCode, createdAt: row.created_at };
    return { hash: row.hash, text: row.content, login };
  }

  /**
   * An address with too many open codes displaces its own oldest code; when all slots are taken, the oldest
   * code of the network with the most codes ends. No request is refused: behind a proxy many callers may have
   * one address.
   */
  get #room(): Room {
    const { maxAll = MAX_ALL, maxPerSource: maxPerOwner = MAX_PER_SOURCE } = this.#deps;
    return { maxAll, maxPerOwner, displaced: oldestOfMost };
  }
}

function oldestOfMost<T extends { readonly owner: string }>(open: readonly T[]): T | undefined {
  const counts = new Map<string, number>();
  const networks = open.map(({ owner }) => wideNetworkOf(owner));
  for (const network of networks) counts.set(network, (counts.get(network) ?? 0) + 1);
  const most = Math.max(...counts.values());
  return open[networks.findIndex((network) => counts.get(network) === most)];
}

function newUserCode(): string {
  for (;;) {
    const letters = [...randomSecret(4 * CODE_LENGTH)]
      // 240 is the largest multiple of 20 in a byte: larger values would bias the letters.
      .filter((byte) => byte < 240)
      .slice(0, CODE_LENGTH)
      .map((byte) => LETTERS.charAt(byte % LETTERS.length));
    if (letters.length === CODE_LENGTH) return letters.join('');
  }
}

/** The code with a dash: `BCDF-GHJK`. */
export function shownCode(code: string): string {
  return `${code.slice(0, 4)}-${code.slice(4)}`;
}

function plainCode(typed: string): string {
  return typed.toUpperCase().replace(/[^A-Z]/g, '');
}

function unknownCode(): AppError {
  return invalidGrant('The code is unknown, used or expired');
}

/**
 * For fairness between unauthenticated clients: the /24 of an IPv4 address, the /48 of an IPv6 address.
 * `source`: see sourceOf().
 */
function wideNetworkOf(source: string): string {
  const groups = source.split(/[.:]/);
  return groups.slice(0, 3).join('.');
}

/** The error for an unknown or expired code. */
export function invalidGrant(detail: string): AppError {
  return new AppError('invalid_grant', detail, { hint: 'Log in again' });
}
