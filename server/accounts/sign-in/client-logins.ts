/**
 * Logins of programs, approved by a person in the console: with a browser on the same computer (RFC
 * 8252, with PKCE, RFC 7636), or with a short code on another one (RFC 8628). Each gives the
 * program its own access key.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Call, Principal, Scope } from '../../calls/principal.ts';
import type { ShortTokens } from '../../calls/short-tokens.ts';
import type { Recorder } from '../../metadata/change.ts';
import { type Clock, formatTime } from '../../platform/clock.ts';
import { AppError, invalidField } from '../../platform/errors.ts';
import { randomSecret } from '../../platform/ids.ts';
import { assertCovered } from '../keys/access-key-limits.ts';
import type { AccessKeys } from '../keys/access-keys.ts';
import { hashSecret } from '../keys/api-key-text.ts';
import type { Authenticator } from './authenticator.ts';
import type { DeviceCodes, DeviceLogin, IssuedCode, IssuedKey } from './client-login-schema.ts';
import {
  DEVICE_CODE_MS,
  DeviceLogins,
  type DeviceRequest,
  invalidGrant,
  POLL_INTERVAL_MS,
  shownCode,
} from './device-logins.ts';
import { LoginThrottle } from './login-throttle.ts';
import type { PasswordChecks } from './password-checks.ts';

/** Short, because a program on the same computer redeems the code immediately. */
const CODE_MS = 60_000;
/** Maximum open codes; above it, the oldest code of the account, else of all accounts, is removed. */
const MAX_CODES_PER_ACCOUNT = 10;
const MAX_CODES = 10_000;
/** Wrong short codes of an account before it must wait, longer each time. */
const FREE_GUESSES = 5;
/** RFC 8252 §7.3: the loopback address, because a name can resolve to another host. */
const LOOPBACK = /^http:\/\/(?:127\.0\.0\.1|\[::1\]):([1-9]\d{0,4})\/callback$/;

/** A person's grant to a program. */
export interface Granted {
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** Lifetime of the key, seconds; undefined: unlimited. */
  readonly expiresIn?: number | undefined;
}

interface Grant extends Granted {
  readonly principal: Principal;
}

/** The content of a code's row. */
interface Code {
  readonly grant: Grant;
  readonly challenge: string;
  readonly redirectUri: string;
}

export interface ClientLoginsDeps {
  readonly tokens: ShortTokens;
  readonly clock: Clock;
  readonly accessKeys: Pick<AccessKeys, 'issue'>;
  readonly checks: Pick<PasswordChecks, 'assertFresh'>;
  readonly authenticator: Pick<Authenticator, 'isCurrent'>;
  /** Base URL of the API and the console, without a slash at the end. */
  readonly apiUrl: () => string;
}

export class ClientLogins {
  readonly #deps: ClientLoginsDeps;
  readonly #devices: DeviceLogins<Grant>;
  readonly #guesses: LoginThrottle;

  constructor(deps: ClientLoginsDeps) {
    this.#deps = deps;
    this.#devices = new DeviceLogins(deps);
    this.#guesses = new LoginThrottle({ clock: deps.clock, freeFailures: FREE_GUESSES });
  }

  /**
   * A code for the program that listens at `redirectUri`, valid once, for 60 s, and only with the
   * verifier of `challenge`. Rejects with `invalid_request`, `scope_required` (more than the
   * caller's own credential may), `password_required`.
   */
  async approve(
    { principal, record }: Call,
    asked: Granted & { readonly challenge: string; readonly redirectUri: string },
  ): Promise<IssuedCode> {
    const { challenge, redirectUri, ...granted } = asked;
    if (Number(LOOPBACK.exec(redirectUri)?.[1] ?? 0) > 65_535 || !LOOPBACK.test(redirectUri)) {
      throw invalidField(
        'redirect_uri',
        'must be http://127.0.0.1:PORT/callback or http://[::1]:PORT/callback',
      );
    }
    const grant = this.#grantOf(principal, granted);
    await this.#deps.checks.assertFresh(principal);
    const code = randomSecret(32).toString('base64url');
    const content: Code = { grant, challenge, redirectUri };
    const token = {
      kind: 'code',
      hash: hashSecret(code),
      owner: `account:${principal.accountId}`,
      content: JSON.stringify(content),
      lifeMs: CODE_MS,
    } as const;
    const issued = { code, expires_in: CODE_MS / 1000 };
    const room = { maxAll: MAX_CODES, maxPerOwner: MAX_CODES_PER_ACCOUNT };
    await this.#deps.tokens.add(token, room, record(issued));
    return issued;
  }

  /** The key for a code. Any attempt uses it up. Rejects with `invalid_grant`, `too_many_access_keys`. */
  async redeem(
    recorder: Recorder,
    given: { readonly code: string; readonly verifier: string; readonly redirectUri: string },
  ): Promise<IssuedKey> {
    const { tokens } = this.#deps;
    const name = { kind: 'code', hash: hashSecret(given.code) } as const;
    const row = await tokens.find(name);
    const isTaken = row !== undefined && (await tokens.take(name));
    const code = isTaken ? (JSON.parse(row.content) as Code) : undefined;
    const isGood =
      code !== undefined &&
      code.redirectUri === given.redirectUri &&
      isVerifierOf(code.challenge, given.verifier);
    if (!isGood) throw invalidGrant('The code is unknown, used or expired, or is not for this program');
    return this.#issue(recorder, code.grant);
  }

  /** Codes for a program on another computer. Rejects with `invalid_request`. */
  async beginDevice({ name, scopes, address }: DeviceRequest): Promise<DeviceCodes> {
    assertName(name);
    const asked = { name, scopes: [...new Set(scopes)], address };
    const { deviceCode, userCode } = await this.#devices.begin(asked);
    return {
      device_code: deviceCode,
      user_code: shownCode(userCode),
      verification_uri: `${this.#deps.apiUrl()}/device`,
      expires_in: DEVICE_CODE_MS / 1000,
      interval: POLL_INTERVAL_MS / 1000,
    };
  }

  /** The login with this code. Rejects with `login_code_not_found`, or `rate_limited` after wrong codes. */
  async findDevice(principal: Principal, typed: string): Promise<DeviceLogin> {
    this.#assertMayGuess(principal);
    const login = await this.#devices.undecided(typed);
    if (login === undefined) throw this.#wrongGuess(principal);
    const { name, scopes, address, createdAt, userCode } = login;
    const created_at = formatTime(createdAt);
    return { user_code: shownCode(userCode), name, scopes: [...scopes], address, created_at };
  }

  /**
   * Approves or denies the login with this code, limited to the caller's own rights. Rejects like
   * `findDevice`, and with `scope_required`, `password_required`.
   */
  async decideDevice(
    { principal, record }: Call,
    { typed, isApproved, expiresIn }: { typed: string; isApproved: boolean; expiresIn?: number | undefined },
  ): Promise<Record<string, never>> {
    this.#assertMayGuess(principal);
    const login = await this.#devices.undecided(typed);
    if (login === undefined) throw this.#wrongGuess(principal);
    const { name, scopes } = login;
    if (isApproved) await this.#deps.checks.assertFresh(principal);
    const decision = isApproved ? this.#grantOf(principal, { name, scopes, expiresIn }) : 'refused';
    // A concurrent request may have decided.
    const isDecided = await this.#devices.decide(typed, decision, record({}));
    if (!isDecided) throw this.#wrongGuess(principal);
    return {};
  }

  /** The key, once approved. Rejects like DeviceLogins.poll, and with `too_many_access_keys`. */
  async redeemDevice(recorder: Recorder, deviceCode: string): Promise<IssuedKey> {
    return this.#issue(recorder, await this.#devices.poll(deviceCode));
  }

  #grantOf(principal: Principal, { name, scopes, expiresIn }: Granted): Grant {
    if (principal.accountId === 0) throw new AppError('account_not_found', 'The operator has no account');
    assertName(name);
    const { clock } = this.#deps;
    const expiresAt = expiresIn === undefined ? null : clock.now() + expiresIn * 1000;
    assertCovered(principal, { scopes, limits: principal.bucketLimits, expiresAt });
    return { principal, name, scopes: [...new Set(scopes)], expiresIn };
  }

  /** The approving user may have logged out or been suspended. */
  async #issue(recorder: Recorder, { principal, name, scopes, expiresIn }: Grant): Promise<IssuedKey> {
    const { accessKeys, authenticator } = this.#deps;
    if (!(await authenticator.isCurrent(principal))) {
      throw invalidGrant('The session that approved this log-in has ended');
    }
    // The log names the account of the key.
    const whose = { account_id: principal.accountId, username: principal.username };
    const record: Recorder['record'] = (made) => recorder.record(Object.assign({}, made, whose));
    const limits = principal.bucketLimits?.map(({ bucket, prefix }) => ({ name: bucket, prefix }));
    const key = await accessKeys.issue(
      { principal, record },
      {
        name,
        scopes: [...scopes],
        ...(limits !== undefined && { buckets: limits }),
        ...(expiresIn !== undefined && { expires_in: expiresIn }),
      },
    );
    return { ...key, ...whose };
  }

  /** Per account, because guesses may come from many addresses; edges.ts limits each address. */
  #assertMayGuess(principal: Principal): void {
    const waitMs = this.#guesses.waitMs(guessOf(principal));
    if (waitMs === 0) return;
    throw new AppError('rate_limited', 'Too many wrong codes from this account', {
      retryAfterSeconds: Math.ceil(waitMs / 1000),
    });
  }

  #wrongGuess(principal: Principal): AppError {
    this.#guesses.failed(guessOf(principal));
    return new AppError('login_code_not_found', 'No log-in request has this code', {
      hint: 'Compare the code with the one that the program shows; codes expire after 10 minutes',
    });
  }
}

const guessOf = ({ accountId }: Principal) => ({ target: `code ${accountId}`, address: '' });

/** S256 of RFC 7636 §4.6. */
function isVerifierOf(challenge: string, verifier: string): boolean {
  const [expected, given] = [Buffer.from(challenge), Buffer.from(challengeOf(verifier))];
  return expected.length === given.length && timingSafeEqual(expected, given);
}

function challengeOf(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url');
}

/** A person reads it before approving; right-to-left text could disguise its content. */
function assertName(name: string): void {
  if (name.isWellFormed() && !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(name)) return;
  throw invalidField('name', 'must not contain control or formatting characters');
}
