/**
 * Usage statements that other domains add to the very commit of the change, so that usage is counted if and
 * only if the change happened.
 */

import type { RowIdOf, Statement } from '../../metadata/metadata.ts';
import { METERS } from './meters.ts';
import { type SteadyClock, ticksOf } from './steady-clock.ts';
import type { UsageStore } from './usage-store.ts';

/** The facts that a machine is charged by. */
export interface UsedVm {
  readonly vm_id: string;
  readonly account_id: number;
  readonly name: string;
  readonly instance_type: string;
  readonly disk_gb: number;
}

/** The facts that a bucket is charged by. */
export interface UsedBucket {
  /** Row id; RowIdOf when the commit makes it. */
  readonly id: number | RowIdOf;
  readonly account_id: number;
  readonly name: string;
}

/** The facts that a database is charged by. */
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

  /** Adds `bytes` (negative: removes) to the stored bytes. */
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

  /** Adds `bytes` sent from the bucket's objects. */
  bucketSent(id: number, bytes: number): Statement {
    const { store, steady } = this.#deps;
    return store.add({ meter: 'egress', resourceId: id }, bytes, ticksOf(METERS.egress, steady.now()));
  }

  /** Also for a deleted database that is restored. */
  databaseOpened({ database_id, account_id, name, engine }: UsedDatabase, bytes: number): Statement {
    const now = this.#databaseTicks();
    const line = { meter: 'database.storage', resourceId: database_id, accountId: account_id, now } as const;
    return this.#deps.store.reopen({ ...line, name, variant: engine, level: bytes });
  }

  /** Sets the size of the database, bytes. Does nothing for a deleted one. */
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

  /** Adds `bytes` that the database sent to its user. Does nothing for a purged one. */
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
