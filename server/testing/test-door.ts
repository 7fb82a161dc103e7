/** A door for tests of edges: nothing is refused, and nothing logged, unless they say so. */
import { pino } from 'pino';
import { Door, type DoorDeps, TrustedProxies, UnreadResponses } from '../http/exchange.ts';
import { systemClock } from '../platform/clock.ts';
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
