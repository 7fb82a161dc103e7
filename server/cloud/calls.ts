/** Makes the common part of all calls: responses that are kept, operations, the stream of updates. */
import type { AccountsPart } from '../accounts/part.ts';
import { Idempotency } from '../calls/idempotency.ts';
import { IdempotencyStore } from '../calls/idempotency-store.ts';
import { Operations } from '../calls/operations.ts';
import { OperationsStore } from '../calls/operations-store.ts';
import type { Principal } from '../calls/principal.ts';
import { ShortTokens } from '../calls/short-tokens.ts';
import { updatesSocket } from '../http/operation-routes.ts';
import type { Job } from '../platform/jobs.ts';
import type { BuildOptions } from './cloud.ts';
import { callsRoutes } from './edges.ts';
import type { Foundations } from './foundations.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

interface CallsDeps extends Pick<AccountsPart, 'apiKeys'> {
  readonly base: Foundations;
}

/** Responses that are kept: for a repeated Idempotency-Key, and of operations answered before their end. */
export async function buildCalls(
  { config, clock, log }: Pick<BuildOptions, 'config' | 'clock' | 'log'>,
  { base, apiKeys }: CallsDeps,
) {
  const { metadata, membership, keys: sealer, updates, tickets } = base;
  const common = { metadata, membership, sealer, clock, maxKept: config.keptAnswers };
  const ownKeyState = (caller: Principal) => apiKeys.ownKeyState(caller);
  const idempotency = new Idempotency({ ...common, store: new IdempotencyStore(metadata), ownKeyState });
  const operations = new Operations({
    ...common,
    store: new OperationsStore(metadata),
    isOwner: (caller) => apiKeys.ownsAccount(caller),
    onLost: (operation, err) => log.error({ operation, err }, 'storing the outcome of an operation failed'),
  });
  const hourly = (name: string, run: () => Promise<unknown>): Job => {
    return { name, everyMs: HOUR_MS, per: 'cluster', run };
  };
  const countEarlier: Job = {
    name: 'count responses stored by an earlier version',
    everyMs: MINUTE_MS,
    per: 'cluster',
    run: async () => {
      await idempotency.countEarlier();
      await operations.countEarlier();
    },
  };
  const tokens = new ShortTokens({ metadata, clock });
  const sweepTokens: Job = {
    name: 'sweep codes of log-ins',
    everyMs: 10 * MINUTE_MS,
    per: 'cluster',
    run: () => tokens.sweep(),
  };
  if (membership.isShared) {
    base.bus.onChange({
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
    routes: callsRoutes({ operations }),
    sockets: [updatesSocket(updates, tickets)],
    jobs: [
      hourly('sweep idempotency keys', () => idempotency.sweep()),
      hourly('sweep operations', () => operations.sweep()),
      sweepTokens,
      countEarlier,
    ],
  };
}
