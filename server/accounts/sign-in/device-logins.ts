/**
 * Log-ins that a device asked for with a short code (RFC 8628), until they are decided and fetched. In
 * memory: a restart ends them, and the program asks again. Anyone may ask, so a network that asks for
 * many only ever displaces itself.
 */
import type { Scope } from '../../calls/principal.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { sourceOf } from '../../platform/host/caller-networks.ts';
import { randomSecret } from '../../platform/ids.ts';
import { hashSecret } from '../keys/api-key-text.ts';

/** Lifetime of a code. */
export const DEVICE_CODE_MS = 10 * 60_000;
/** Least time between two polls, at first; RFC 8628 §3.5 adds as much for each poll that came too soon. */
export const POLL_INTERVAL_MS = 5000;
/** 20 letters without vowels, so that no code is a word, and nothing looks like a digit (RFC 8628 §6.1). */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';
/** 20^8, about 2^34. */
const CODE_LENGTH = 8;
const MAX_ALL = 2000;
/** Many callers may share the address of a proxy that is not trusted. */
const MAX_PER_SOURCE = 500;

/** A device's wish. */
export interface DeviceRequest {
  /** Name of the key to be. */
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** The device's address. */
  readonly address: string;
}

export interface DeviceLogin<Grant> extends DeviceRequest {
  readonly userCode: string;
  /** Wall time, ms. */
  readonly createdAt: number;
  /** `refused`, or what was granted; undefined: nobody has decided. */
  readonly decision: 'refused' | Grant | undefined;
}

interface Pending<Grant> extends DeviceLogin<Grant> {
  decision: 'refused' | Grant | undefined;
  readonly deviceHash: string;
  /** See sourceOf(). */
  readonly source: string;
  readonly network: string;
  /** Monotonic times. */
  readonly endsAt: number;
  polledAt: number;
  intervalMs: number;
}

export class DeviceLogins<Grant> {
  readonly #clock: Clock;
  readonly #maxAll: number;
  readonly #maxPerSource: number;
  /** Log-ins by the hash of the device code, oldest first. */
  readonly #pending = new Map<string, Pending<Grant>>();
  readonly #byUserCode = new Map<string, Pending<Grant>>();

  constructor(clock: Clock, { maxAll = MAX_ALL, maxPerSource = MAX_PER_SOURCE } = {}) {
    this.#clock = clock;
    this.#maxAll = maxAll;
    this.#maxPerSource = maxPerSource;
  }

  /** New codes. The oldest that this address has open ends when there are too many. */
  begin(request: DeviceRequest): { readonly deviceCode: string; readonly userCode: string } {
    this.#dropEnded();
    this.#makeRoom(request.address);
    const deviceCode = randomSecret(32).toString('base64url');
    const now = this.#clock.monotonic();
    const login: Pending<Grant> = {
      ...request,
      userCode: this.#newUserCode(),
      createdAt: this.#clock.now(),
      decision: undefined,
      deviceHash: hashSecret(deviceCode),
      source: sourceOf(request.address),
      network: wideNetworkOf(request.address),
      endsAt: now + DEVICE_CODE_MS,
      polledAt: now - POLL_INTERVAL_MS,
      intervalMs: POLL_INTERVAL_MS,
    };
    this.#pending.set(login.deviceHash, login);
    this.#byUserCode.set(login.userCode, login);
    return { deviceCode, userCode: login.userCode };
  }

  /** The undecided log-in of a code as it was typed: in small letters, with or without the dash. */
  undecided(typed: string): DeviceLogin<Grant> | undefined {
    this.#dropEnded();
    const login = this.#byUserCode.get(plainCode(typed));
    return login?.decision === undefined ? login : undefined;
  }

  /** Decides once; false: there is no undecided log-in of this code. */
  decide(typed: string, decision: 'refused' | Grant): boolean {
    const login = this.undecided(typed) as Pending<Grant> | undefined;
    if (login === undefined) return false;
    login.decision = decision;
    return true;
  }

  /**
   * The grant, once: the code is used up. Throws `authorization_pending`, `slow_down` (polled before
   * the interval was over), `access_denied`, and `invalid_grant` for a code that is unknown, used or over.
   */
  poll(deviceCode: string): Grant {
    this.#dropEnded();
    const login = this.#pending.get(hashSecret(deviceCode));
    if (login === undefined) throw invalidGrant('The code is unknown, used or expired');
    const now = this.#clock.monotonic();
    const isEarly = now - login.polledAt < login.intervalMs;
    login.polledAt = now;
    if (isEarly) {
      login.intervalMs += POLL_INTERVAL_MS;
      throw new AppError('slow_down', `Polled too soon; wait ${login.intervalMs / 1000} s`, {
        retryAfterSeconds: login.intervalMs / 1000,
      });
    }
    if (login.decision === undefined) {
      throw new AppError('authorization_pending', 'The log-in with this code is not approved yet', {
        retryAfterSeconds: login.intervalMs / 1000,
      });
    }
    this.#drop(login);
    if (login.decision === 'refused') throw new AppError('access_denied', 'The log-in was refused');
    return login.decision;
  }

  #newUserCode(): string {
    for (;;) {
      const letters = [...randomSecret(4 * CODE_LENGTH)]
        // 240 is the largest multiple of 20 in a byte: the rest would make some letters likelier.
        .filter((byte) => byte < 240)
        .slice(0, CODE_LENGTH)
        .map((byte) => LETTERS.charAt(byte % LETTERS.length));
      const code = letters.join('');
      if (letters.length === CODE_LENGTH && !this.#byUserCode.has(code)) return code;
    }
  }

  /** All live equally long, so the oldest end first. */
  #dropEnded(): void {
    const now = this.#clock.monotonic();
    for (const login of this.#pending.values()) {
      if (login.endsAt > now) return;
      this.#drop(login);
    }
  }

  /**
   * An address that asks for too many displaces its own oldest; when all places are taken, the oldest of the
   * network with most ends. Nobody is refused: behind a proxy many callers may have one address.
   */
  #makeRoom(address: string): void {
    const source = sourceOf(address);
    const own = [...this.#pending.values()].filter((login) => login.source === source);
    const [first] = own;
    if (own.length >= this.#maxPerSource && first !== undefined) this.#drop(first);
    if (this.#pending.size < this.#maxAll) return;
    const counts = new Map<string, number>();
    for (const { network } of this.#pending.values()) counts.set(network, (counts.get(network) ?? 0) + 1);
    const most = Math.max(...counts.values());
    const oldest = [...this.#pending.values()].find(({ network }) => counts.get(network) === most);
    if (oldest !== undefined) this.#drop(oldest);
  }

  #drop(login: Pending<Grant>): void {
    this.#pending.delete(login.deviceHash);
    this.#byUserCode.delete(login.userCode);
  }
}

/** The code with a dash: `BCDF-GHJK`. */
export function shownCode(code: string): string {
  return `${code.slice(0, 4)}-${code.slice(4)}`;
}

function plainCode(typed: string): string {
  return typed.toUpperCase().replace(/[^A-Z]/g, '');
}

/** For fairness between unauthenticated clients: the /24 of an IPv4 address, the /48 of an IPv6 address. */
function wideNetworkOf(address: string): string {
  const source = sourceOf(address);
  const groups = source.split(/[.:]/);
  return groups.slice(0, 3).join('.');
}

/** The answer to a code that is not (or no longer) good. */
export function invalidGrant(detail: string): AppError {
  return new AppError('invalid_grant', detail, { hint: 'Log in again' });
}
