/** Makes restore drills. */
import { join } from 'node:path';
import { sealHash } from '../audit/chain.ts';
import { LedgerStore } from '../billing/ledger/ledger-store.ts';
import { DrillProcesses } from '../drivers/drill-process/drill-ground.ts';
import { programFile } from '../platform/program-files.ts';
import { DrillStore } from '../recovery/drill/drill-store.ts';
import { Drills, type DrillsDeps } from '../recovery/drill/drills.ts';
import { KeySlot } from '../recovery/repository/key-slot.ts';
import type { RecoveryKeys } from '../recovery/repository/recovery-keys.ts';
import type { Target } from '../recovery/repository/target.ts';
import type { DrillMeans } from './drill-cloud.ts';
import type { RecoveryDeps } from './recovery.ts';

const DAY_MS = 86_400_000;
/** Runs in a process of its own. */
const DRILL_PROGRAM = programFile('cloud/drill-main');

type DrillParts = Pick<RecoveryDeps, 'config' | 'clock' | 'base'> & {
  readonly target: Target;
  readonly keys: RecoveryKeys;
};

type DrillShared = Pick<DrillsDeps, 'store' | 'changes' | 'news' | 'cloud' | 'logs' | 'onError' | 'onEnd'> & {
  readonly owner: () => Promise<string>;
};

export function buildDrills({ config, clock, base, target, keys }: DrillParts, shared: DrillShared): Drills {
  const { metadata, secrets, diskSpace } = base;
  const { store, changes, owner } = shared;
  const drillStore = new DrillStore(metadata);
  const isKeyTaken = (id: string) => store.isKeyTaken(id);
  const ledger = new LedgerStore(metadata);
  return new Drills({
    ...shared,
    clock,
    location: target.location,
    everyMs: config.drillDays * DAY_MS,
    drillStore,
    slot: new KeySlot({ target, store: drillStore, changes, secrets, isKeyTaken }),
    keys: () => keys.lend(),
    chainHash: async ({ chain, number }) =>
      chain === 'ledger'
        ? ((await ledger.hashedFrom(number, 1))[0]?.hash ?? null)
        : sealHash(metadata, number),
    ground: new DrillProcesses({
      entry: DRILL_PROGRAM,
      means: (): DrillMeans => ({ config, reserveBytes: diskSpace.headroomBytes() }),
      directory: config.drillDirectory || join(config.dataDir, 'drill'),
      owner,
      withinMs: config.drillMinutes * 60_000,
    }),
  });
}
