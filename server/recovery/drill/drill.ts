/**
 * A restore drill: another process restores a point into a scratch directory, starts a second cloud
 * on it, and compares. This file has its input, its result, and the port to that process.
 */
import type { LogHead, LogVerdict } from '../logs/log-verification.ts';
import type { Verdict } from './verification.ts';

export interface DrillRequest {
  readonly pointId: string;
  readonly repositoryId: string;
  /** The repository's own key, 32 bytes in hexadecimal. */
  readonly repositoryKey: string;
  /** Lines of the logs of database servers; null: logs are not tested with this point. */
  readonly heads: readonly LogHead[] | null;
}

/** `skipped`: not possible on this host; `detail` says why. */
export type CheckState = 'passed' | 'failed' | 'skipped';

export interface DrillCheck {
  /** Subject of the comparison: `counts`, `ledger`, … */
  readonly name: string;
  readonly state: CheckState;
  /** Result, or the difference, or why it was skipped; for people. */
  readonly detail: string;
}

/** Results of the drill process. */
export interface DrillFindings {
  readonly checks: readonly DrillCheck[];
  /** Damaged files of the repository. */
  readonly verdict: Verdict;
  /** Result of reading the archived logs; null: they were not read. */
  readonly logs: LogVerdict | null;
  /** Name of the point's cloud (Manifest); null: missing or unreadable. */
  readonly cloud: string | null;
  /** The newest links of the restored chains; without chains that were not read. */
  readonly chainHeads: readonly ChainHead[];
}

/** A link of a chain of hashes: a transfer of the ledger, or a sealed range of the audit log. */
export interface ChainHead {
  readonly chain: 'ledger' | 'audit log';
  /** Position in the chain, from 1. */
  readonly number: number;
  readonly hash: string;
}

/** Thrown if a drill cannot run now, for lack of disk space or memory. Says nothing about the point. */
export class DrillSkipped extends Error {}

/** Runs drills in a separate process, so that their faults do not affect the cloud. */
export interface DrillGround {
  /**
   * Resolves when all files of the drill are removed. Throws DrillSkipped, the reason of `signal`,
   * or an Error if the process failed.
   */
  run(
    request: DrillRequest,
    how: { readonly signal: AbortSignal; readonly onStage: (stage: string) => void },
  ): Promise<DrillFindings>;
  /** Ends killed drills of this cloud and removes their files. */
  sweep(): Promise<void>;
}

/** The stored result of a point's last drill. */
export interface DrillRecord {
  readonly result: CheckState;
  /** ms since 1970. */
  readonly started_at: number;
  readonly seconds: number;
  /** Why the check failed or was skipped; null: passed. */
  readonly reason: string | null;
  readonly checks: readonly DrillCheck[];
}
