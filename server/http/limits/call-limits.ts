/** Rate limits from the settings: for all calls, for S3, and for some routes. */
import type { Config } from '../../config/config.ts';
import { registrationsOf } from '../../config/registrations.ts';
import type { Clock } from '../../platform/clock.ts';
import { CallerLimits, RateLimiter } from './rate-limits.ts';

/** Calls per address in 10 minutes: requesting and entering codes. */
const DEVICE_LOGINS = 60;
/** Limit of attempts with reset links. */
const PASSWORD_RESETS = 60;
/** Limit of invitations: a class behind one address opens its links and joins. */
const INVITATIONS = 300;

interface CallLimits {
  /** The limits of the JSON API; on other origins, for failed credentials. */
  readonly limiter: CallerLimits;
  readonly s3Limiter: CallerLimits;
  /** Additional limits of some routes, by operation name. */
  readonly routeLimiters: ReadonlyMap<string, RateLimiter>;
}

export function callLimits(config: Config, clock: Clock): CallLimits {
  const { requestsPerWindow, s3RequestsPerWindow, accountRateFactor } = config;
  const limitOf = (name: string, requests: number, windowSeconds: number) =>
    new RateLimiter({ name, requests, windowSeconds }, clock);
  const both = (caller: string, account: string, requests: number) =>
    new CallerLimits(limitOf(caller, requests, 10), limitOf(account, requests * accountRateFactor, 10));
  const resets = limitOf('password resets', PASSWORD_RESETS, 600);
  const registrations = limitOf('registrations', registrationsOf(config), 600);
  const joins = limitOf('uses of invitations', INVITATIONS, 600);
  const deviceLogins = limitOf('device log-ins', DEVICE_LOGINS, 600);
  return {
    limiter: both('requests', 'account', requestsPerWindow),
    s3Limiter: both('s3', 's3-account', s3RequestsPerWindow),
    routeLimiters: new Map([
      ['register', registrations],
      ['requestRegistration', registrations],
      ['resetPassword', resets],
      ['requestPasswordReset', resets],
      ['confirmEmail', resets],
      ['showInvitation', joins],
      ['join', joins],
      ['startDeviceLogin', deviceLogins],
      ['findDeviceLogin', deviceLogins],
      ['decideDeviceLogin', deviceLogins],
    ]),
  };
}
