/** The catalogue's built-in prices, and the plan limits derived from this host. */
import { availableParallelism } from 'node:os';
import type { Logger } from 'pino';
import { type HostSize, limitsOfHost, type Plans } from '../billing/catalog/plans.ts';
import type { BuiltInPrice } from '../billing/catalog/prices.ts';
import { INSTANCE_TYPES } from '../compute/instance-types.ts';
import { ENGINES } from '../databases/engine.ts';

/** Machines have the catalogue's prices; everything else is free until the operator sets a price. */
export const BUILT_IN: readonly BuiltInPrice[] = [
  ...INSTANCE_TYPES.map(({ name, priceMicro }) => ({
    meter: 'vm.time' as const,
    variant: name,
    priceNano: priceMicro * 1000,
  })),
  ...INSTANCE_TYPES.map(({ name, diskGb }) => {
    return { meter: 'vm.disk' as const, variant: name, priceNano: 0, usual: diskGb };
  }),
  { meter: 'storage', variant: '', priceNano: 0 },
  { meter: 'egress', variant: '', priceNano: 0 },
  ...ENGINES.map((variant) => ({ meter: 'database.storage' as const, variant, priceNano: 0 })),
];

/** Updates the plan limits derived from this host. If they cannot be stored, the previous ones remain. */
export async function followHost(
  log: Logger,
  plans: Plans,
  { diskBytes, memoryMb }: Pick<HostSize, 'diskBytes' | 'memoryMb'>,
): Promise<void> {
  const startable = INSTANCE_TYPES.map((type) => type.memoryMb).filter((size) => size <= memoryMb);
  const size = { diskBytes, memoryMb, largestMb: Math.max(0, ...startable), cores: availableParallelism() };
  const give = plans.followHost(limitsOfHost(size));
  await give.catch((error: unknown) => log.warn({ err: error }, 'storing the limits of plans failed'));
}
