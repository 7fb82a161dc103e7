/** Stops the machines of a blocked account, and starts or deletes them afterwards. */
import { BACKGROUND } from '../../metadata/change.ts';
import { isAppError } from '../../platform/errors.ts';
import { AccountStops } from '../../resources/account-stops.ts';
import type { Reason } from '../../resources/row-change.ts';
import { isUp } from './lifecycle.ts';
import type { MachineCall } from './machines.ts';
import type { PowerControl } from './power-control.ts';
import type { Runs } from './runs.ts';
import { type MachineTurns, PASSING_CAUSES, stoppedBecause } from './transitions.ts';
import type { VmDeleter } from './vm-deleter.ts';
import type { VmRow, VmStore } from './vm-store.ts';

export interface MachineStopsDeps {
  readonly store: VmStore;
  readonly turns: MachineTurns;
  readonly runs: Runs;
  readonly power: PowerControl;
  readonly deleter: VmDeleter;
  /** Time for a graceful shutdown, ms. */
  readonly graceMs: number;
  readonly onError: (vmId: string, what: string, error: unknown) => void;
}

/** Guests shut down in parallel: each may use its whole grace period. */
const AT_ONCE = 100;
const BY_CLOUDLET: MachineCall = { ...BACKGROUND, principal: 'administrator' };

interface Halt {
  /** Whether the machine must still be stopped when its turn comes. */
  readonly isDue: (row: VmRow) => boolean;
  /** Default: the reason stored when its stop began. */
  readonly reason?: Reason;
}

export function machineStops(deps: MachineStopsDeps): AccountStops<VmRow> {
  const { store, deleter, onError } = deps;
  return new AccountStops({
    idOf: ({ vm_id }) => vm_id,
    find: (vmId) => store.find(vmId),
    page: (accountId, after, limit) => store.listOf(accountId, after, limit),
    atOnce: AT_ONCE,
    stop: async (row, cause) => {
      if (isUp(row)) await halt(deps, row.vm_id, { isDue: isUp, reason: stoppedBecause(cause) });
    },
    isStopped: ({ state, reason_code }) =>
      ['stopped', 'stopping'].includes(state) && PASSING_CAUSES.some((cause) => cause === reason_code),
    resume: (row) => startAgain(deps, row),
    remove: async ({ vm_id: vmId }) => {
      // A machine that never ran must be stopped too.
      const isDue = ({ state }: VmRow) => state !== 'deleting';
      await halt(deps, vmId, { isDue, reason: stoppedBecause('account_closed') });
      await deleter.remove(BY_CLOUDLET, vmId);
    },
    onError,
  });
}

/** Waits for the stop, which a crash may have interrupted and the reconciler may be finishing. */
async function startAgain(deps: MachineStopsDeps, row: VmRow): Promise<void> {
  const { store, power } = deps;
  const find = async () => (await store.find(row.vm_id)) ?? row;
  if (row.state === 'stopping') {
    await halt(deps, row.vm_id, { isDue: ({ state }) => state === 'stopping' });
    if ((await find()).reason_code !== row.reason_code) return; // someone else was faster
  }
  await power.startOwned(row.vm_id, find);
}

/** Waits for a start in progress, because nothing else would stop its run. */
async function halt(deps: MachineStopsDeps, vmId: string, { isDue, reason }: Halt): Promise<void> {
  const { store, turns, runs, graceMs } = deps;
  const find = async () => {
    const row = await store.find(vmId);
    if (row === undefined) throw new Error('the virtual machine no longer exists');
    return row;
  };
  for (;;) {
    try {
      await turns.act({ id: vmId, action: 'stop', find }, async (row, signal) =>
        isDue(row) ? runs.halt(row, { graceMs, signal, call: BACKGROUND, reason }) : row,
      );
      return;
    } catch (error) {
      if (!isAppError(error, 'vm_locked')) throw error;
    }
    await turns.run(vmId, async () => {});
  }
}
