/**
 * The billing port of compute: its statements join the commit of the change that they count, so that both are
 * stored or neither.
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

/** A machine about to be created or started. */
export interface WantedVm {
  readonly account_id: number;
  readonly plan: string;
  readonly instance_type: string;
}

export interface VmBilling {
  /** Throws `insufficient_credits`, with the type's hourly price, when the account has no credits left. */
  assertCredit(wanted: WantedVm): Promise<void>;
  /** Name of the account's price plan. */
  planOf(accountId: number): Promise<string>;
  /** True for an administrator's account, and once an administrator has granted credits to the account. */
  isTrusted(accountId: number): Promise<boolean>;
  /** Current hourly price of a running machine, credits. */
  pricePerHour(plan: string, instanceType: string): number;
  /** Current hourly price of its disk, credits, charged whether or not it runs. */
  diskPricePerHour(plan: string, vm: Pick<BilledVm, 'instance_type' | 'disk_gb'>): number;
  /**
   * Statements for a new machine; they must follow the statement that stores its row. Throws
   * `quota_exceeded`; if the commit is refused because a concurrent change took the last of a quota, call it
   * again.
   */
  created(vm: BilledVm): Promise<readonly Statement[]>;
  /**
   * Statements for another type or disk of a machine that is off: its usage until now is charged at the
   * earlier price. Throws `quota_exceeded`; retried as created().
   */
  resized(before: BilledVm, after: BilledVm): Promise<readonly Statement[]>;
  /**
   * Statements for a changed size of the disk with its snapshots, after the row. Throws `quota_exceeded`;
   * retried as created().
   */
  diskChanged(before: BilledVm, after: BilledVm): Promise<readonly Statement[]>;
  /** Throws `quota_exceeded` if the account's machines may not have that much more disk, GB. */
  assertDisk(accountId: number, moreGb: number): Promise<void>;
  /** Statements for another name. */
  renamed(vm: Pick<BilledVm, 'vm_id' | 'name'>): readonly Statement[];
  /**
   * Statements for a start, after the one that stores the row, unless the machine was up already. Throws
   * `quota_exceeded`; retried as created().
   */
  memoryTaken(vm: BilledVm): Promise<readonly Statement[]>;
  /**
   * Statements for a start like those of memoryTaken(): all untrusted accounts may use `allMb`
   * together, and each `eachMb`. Throws `insufficient_capacity`; none for a trusted account.
   */
  shareTaken(
    vm: BilledVm,
    shares: { readonly allMb: number; readonly eachMb: number },
  ): Promise<readonly Statement[]>;
  /** Reserves credits before a start. Throws `insufficient_credits`; retried like created(). */
  reserved(vm: BilledVm): Promise<readonly Statement[]>;
  /** Returns the unused reserve after a run or a failed start. */
  released(vm: BilledVm): Promise<readonly Statement[]>;
  /** `at`: ms since 1970. */
  started(vm: BilledVm, at: number): readonly Statement[];
  stopped(vm: BilledVm, at: number): readonly Statement[];
  /** Counts bytes sent through tunnels. Does nothing for a machine that is gone. */
  sent(vmId: string, bytes: number): Statement;
  deleted(vm: BilledVm): readonly Statement[];
}
