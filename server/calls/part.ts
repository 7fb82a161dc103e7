/** Creates the services that all calls share: stored responses and operations. */
import type { Logger } from 'pino';
import type { Bus } from '../metadata/bus.ts';
import type { Metadata } from '../metadata/metadata.ts';
import type { Job } from '../platform/background/jobs.ts';
import type { Clock } from '../platform/clock.ts';
import type { Sealer } from '../platform/master-key.ts';
import type { Membership } from '../platform/membership.ts';
import { Idempotency, type IdempotencyDeps } from './idempotency.ts';
import { IdempotencyStore } from './idempotency-store.ts';
import { Operations, type OperationsDeps } from './operations.ts';
import { OperationsStore } from './operations-store.ts';
import { ShortTokens } from './short-tokens.ts';

export interface CallsDeps {
  readonly metadata: Metadata;
  readonly membership: Membership;
  readonly keys: Sealer;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Logger;
  /** Maximum stored responses per account. */
  readonly maxKept: number;
  readonly apiKeys: {
    readonly ownKeyState: IdempotencyDeps['ownKeyState'];
    readonly ownsAccount: OperationsDeps['isOwner'];
  };
}

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** Stored responses: for a repeated Idempotency-Key, and of operations that respond before their end. */
export async function callsPart({
  metadata,
  membership,
  keys,
  bus,
  clock,
  log,
  maxKept,
  apiKeys,
}: CallsDeps) {
  const common = { metadata, membership, sealer: keys, clock, maxKept };
  const idempotency = new Idempotency({
    ...common,
    store: new IdempotencyStore(metadata),
    ownKeyState: (caller) => apiKeys.ownKeyState(caller),
  });
  const operations = new Operations({
    ...common,
    store: new OperationsStore(metadata),
    isOwner: (caller) => apiKeys.ownsAccount(caller),
    onLost: (operation, err) => log.error({ operation, err }, 'storing the outcome of an operation failed'),
  });
  const tokens = new ShortTokens({ metadata, clock });
  const every = (name: string, everyMs: number, run: () => Promise<unknown>): Job => {
    return { name, everyMs, per: 'cluster', run };
  };
  if (membership.isShared) {
    bus.onChange({
      tell: ({ kind, id }) => {
        if (kind === 'operation') operations.changed(id);
      },
      lost: () => {}, // they look by themselves, a little later
    });
  }
  await operations.start();
  return {
    idempotency,
    operations,
    jobs: [
      every('sweep idempotency keys', HOUR_MS, () => idempotency.sweep()),
      every('sweep operations', HOUR_MS, () => operations.sweep()),
      every('sweep codes of log-ins', 10 * MINUTE_MS, () => tokens.sweep()),
      every('count responses stored by an earlier version', MINUTE_MS, async () => {
        await idempotency.countEarlier();
        await operations.countEarlier();
      }),
    ],
  };
}
