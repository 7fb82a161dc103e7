/**
 * What other domains write of their use, in the very commit of the change: statements only, so that no
 * change is counted that did not happen, and none happens uncounted.
 */

import type { RowIdOf, Statement } from '../../metadata/metadata.ts';
import { METERS } from './meters.ts';
import { type SteadyClock, ticksOf } from './steady-clock.ts';
import type { UsageStore } from './usage-store.ts';

/** What is charged of a machine. */
export interface UsedVm {
  readonly vm_id: string;
  readonly account_id: number;
  readonly name: string;
  readonly instance_type: string;
  readonly disk_gb: number;
}

/** What is charged of a bucket. */
export interface UsedBucket {
  /** Row id; RowIdOf when the commit makes it. */
  readonly id: number | RowIdOf;
  readonly account_id: number;
  readonly name: string;
}

/** What is charged of a database. */
export interface UsedDatabase {
  readonly database_id: string;
  readonly account_id: number;
  readonly name: string;
  readonly engine: string;
}

const DATABASE_METERS = ['database.storage', 'egress'] as const;

export interface UsageDeps {
  readonly store: UsageStore;
  readonly steady: SteadyClock;
}

export class Usage {
  readonly #deps: UsageDeps;

  constructor(deps: UsageDeps) {
    this.#deps = deps;
  }

  vmCreated({ vm_id, account_id, name, instance_type, disk_gb }: UsedVm): Statement[] {
    const { store, steady } = this.#deps;
    const now = ticksOf(METERS['vm.time'], steady.now());
    const line = { resourceId: vm_id, accountId: account_id, name, variant: instance_type, now };
    return [
      store.open({ ...line, meter: 'vm.time', level: 0 }),
      store.open({ ...line, meter: 'vm.disk', level: disk_gb }),
    ];
  }

  /** `at`: when its processor began to run, wall time. */
  vmStarted({ vm_id }: UsedVm, at: number): Statement[] {
    return [this.#vmRuns(vm_id, 1, at)];
  }

  /** `at`: when the run ended, wall time; also long ago. */
  vmStopped({ vm_id }: UsedVm, at: number): Statement[] {
    return [this.#vmRuns(vm_id, -1, at)];
  }

  vmDeleted({ vm_id }: UsedVm): Statement[] {
    const { store, steady } = this.#deps;
    return (['vm.time', 'vm.disk'] as const).map((meter) =>
      store.close({ meter, resourceId: vm_id }, ticksOf(METERS[meter], steady.now())),
    );
  }

  bucketCreated({ id, account_id, name }: UsedBucket): Statement[] {
    const { store, steady } = this.#deps;
    return (['storage', 'egress'] as const).map((meter) => {
      const now = ticksOf(METERS[meter], steady.now());
      return store.open({ meter, resourceId: id, accountId: account_id, name, variant: '', level: 0, now });
    });
  }

  /** `bytes` more (or fewer) are kept. */
  bucketChanged(id: number, bytes: number): Statement {
    const { store, steady } = this.#deps;
    return store.change({ meter: 'storage', resourceId: id }, bytes, ticksOf(METERS.storage, steady.now()));
  }

  bucketDeleted(id: number): Statement[] {
    const { store, steady } = this.#deps;
    return (['storage', 'egress'] as const).map((meter) =>
      store.close({ meter, resourceId: id }, ticksOf(METERS[meter], steady.now())),
    );
  }

  /** `bytes` of the bucket's objects were sent to someone. */
  bucketSent(id: number, bytes: number): Statement {
    const { store, steady } = this.#deps;
    return store.add({ meter: 'egress', resourceId: id }, bytes, ticksOf(METERS.egress, steady.now()));
  }

  /** Also of one that was deleted before and is had back. */
  databaseOpened({ database_id, account_id, name, engine }: UsedDatabase, bytes: number): Statement {
    const now = this.#databaseTicks();
    const line = { meter: 'database.storage', resourceId: database_id, accountId: account_id, now } as const;
    return this.#deps.store.reopen({ ...line, name, variant: engine, level: bytes });
  }

  /** It takes so many bytes from now on. Nothing for one that was deleted. */
  databaseResized(databaseId: string, bytes: number): Statement {
    const line = { meter: 'database.storage', resourceId: databaseId } as const;
    return this.#deps.store.setLevel(line, bytes, this.#databaseTicks());
  }

  databaseRenamed(databaseId: string, name: string): Statement[] {
    return DATABASE_METERS.map((meter) => this.#deps.store.rename({ meter, resourceId: databaseId }, name));
  }

  databaseDeleted(databaseId: string): Statement[] {
    const { store } = this.#deps;
    const line = { meter: 'database.storage', resourceId: databaseId } as const;
    return [store.close(line, this.#databaseTicks()), store.closeDatabaseEgress(databaseId)];
  }

  /** `bytes` of the database were sent to its user. Nothing for one that is gone for good. */
  databaseSent(databaseId: string, bytes: number): Statement {
    const { store, steady } = this.#deps;
    return store.addDatabaseEgress(databaseId, bytes, ticksOf(METERS.egress, steady.now()));
  }

  #databaseTicks(): number {
    return ticksOf(METERS['database.storage'], this.#deps.steady.now());
  }

  #vmRuns(vmId: string, delta: 1 | -1, at: number): Statement {
    const { store, steady } = this.#deps;
    const now = ticksOf(METERS['vm.time'], steady.at(at));
    return store.change({ meter: 'vm.time', resourceId: vmId }, delta, now);
  }
}
