/**
 * What compute needs of billing: its statements go into the commit of the change that they count, so that
 * neither is there without the other.
 */
import type { Statement } from '../../metadata/metadata.ts';

export interface BilledVm {
  readonly vm_id: string;
  readonly account_id: number;
  readonly name: string;
  readonly instance_type: string;
  readonly vcpus: number;
  readonly memory_mb: number;
  readonly disk_gb: number;
}

/** A machine that is to be made or started. */
export interface WantedVm {
  readonly account_id: number;
  readonly plan: string;
  readonly instance_type: string;
}

export interface VmBilling {
  /** Throws `insufficient_credits`, with the price of an hour of the type, when the account has none left. */
  assertCredit(wanted: WantedVm): Promise<void>;
  /** By the name of which its prices are found. */
  planOf(accountId: number): Promise<string>;
  /** Credits an hour that it runs, now. */
  pricePerHour(plan: string, instanceType: string): number;
  /** Credits an hour of its disk, now: it is kept whether the machine runs or not. */
  diskPricePerHour(plan: string, vm: Pick<BilledVm, 'instance_type' | 'disk_gb'>): number;
  /**
   * Statements for a new machine. Throws `quota_exceeded`; the commit is refused when somebody else took
   * the last of a quota meanwhile: ask again then.
   */
  created(vm: BilledVm): Promise<readonly Statement[]>;
  /**
   * For the commit that has it start, behind its row, unless it was up already. Throws `quota_exceeded`;
   * refused and asked again as above.
   */
  memoryTaken(vm: BilledVm): Promise<readonly Statement[]>;
  /** Before a start: sets credits aside. Throws `insufficient_credits`; refused and asked again as above. */
  reserved(vm: BilledVm): Promise<readonly Statement[]>;
  /** After a run, or a start that failed: gives back what is left of them. */
  released(vm: BilledVm): Promise<readonly Statement[]>;
  /** `at`: ms since 1970. */
  started(vm: BilledVm, at: number): readonly Statement[];
  stopped(vm: BilledVm, at: number): readonly Statement[];
  deleted(vm: BilledVm): readonly Statement[];
}
