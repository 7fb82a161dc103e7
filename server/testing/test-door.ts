/** An exchange for tests of edges: by default it refuses nothing and logs nothing. */

import { pino } from 'pino';
import type { Principal } from '../calls/principal.ts';
import type { Authenticates } from '../http/caller.ts';
import { Door, type DoorDeps, TrustedProxies, UnreadResponses } from '../http/exchange.ts';
import { systemClock } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import { Meters } from '../platform/prometheus.ts';

export function testDoor(deps: Partial<DoorDeps> = {}): Door {
  return new Door({
    clock: systemClock,
    log: pino({ level: 'silent' }),
    meters: new Meters(),
    proxies: new TrustedProxies([]),
    headers: {},
    hostNames: [],
    isReserve: () => false,
    limiter: null,
    unread: new UnreadResponses(2 ** 27),
    ...deps,
  });
}

/** The holders of these keys, by their text; `ended`: ids of keys that are no longer valid. */
export function testKeys(
  keys: Readonly<Record<string, Principal>>,
  ended: ReadonlySet<string>,
): Authenticates {
  const good = (found: Principal | undefined) => {
    if (found) return found;
    throw new AppError('invalid_api_key', 'This key is not valid');
  };
  return {
    authenticate: ({ apiKey = '' }) => good(keys[apiKey]),
    isCurrent: ({ credentialId }) => !ended.has(credentialId),
    holderOf: (id) => good(Object.values(keys).find((one) => one.credentialId === id && !ended.has(id))),
  };
}
