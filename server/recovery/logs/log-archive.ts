/** Logs of database servers in the recovery target, beside the points. */
import { BACKGROUND, type Changes } from '../../metadata/change.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Semaphore } from '../../platform/concurrency.ts';
import type { Lease } from '../repository/lease.ts';
import type { Repository } from '../repository/repository.ts';
import type { RecoveryStore } from '../store.ts';
import type { RecoverySummaryStore } from '../summary-store.ts';
import type { BaseCopy, Keeping, LogBase, LogLines } from './log-lines.ts';
import { type LogHead, type LogReport, type LogVerdict, uselessFiles } from './log-verification.ts';

/** The archive that writes the logs. */
export interface LogWriter {
  /** The archived logs, as of now. */
  heads(): readonly LogHead[];
  /** Restarts the archiving of logs that contain these damaged files. Never rejects. */
  mend(useless: ReadonlySet<string>): Promise<void>;
}

export interface LogArchiveDeps {
  /** undefined: none yet, because no point was created. Throws `target_unavailable`. */
  readonly find: () => Promise<Repository | undefined>;
  readonly lease: Pick<Lease, 'during'>;
  /** Held while unreferenced pieces are removed. */
  readonly sweeping: Semaphore;
  readonly clock: Pick<Clock, 'now' | 'uptime'>;
  readonly store: Pick<RecoveryStore, 'damagedFiles'>;
  readonly verdicts: Pick<RecoverySummaryStore, 'logs' | 'setLogs'>;
  readonly changes: Changes;
  readonly location: string;
}

/** Interval of looking for the repository. */
const KNOWN_MS = 60_000;

export class LogArchive {
  readonly #deps: LogArchiveDeps;
  #known: { readonly repository: Repository; readonly at: number } | undefined;
  #writer: LogWriter | undefined;

  constructor(deps: LogArchiveDeps) {
    this.#deps = deps;
  }

  /**
   * undefined: there is no recovery point. `writer` takes part in verifications of logs from now
   * on. Throws `target_unavailable`, `target_in_use`.
   */
  async open(writer: LogWriter): Promise<LogLines | undefined> {
    const { find, clock } = this.#deps;
    this.#writer = writer;
    if (this.#known === undefined || clock.uptime() - this.#known.at > KNOWN_MS) {
      const repository = await find();
      this.#known = repository && { repository, at: clock.uptime() };
    }
    return this.#known?.repository.logs;
  }

  heads(): readonly LogHead[] {
    return this.#writer?.heads() ?? [];
  }

  /** The last verification; null: there was none. */
  async report(): Promise<LogReport | null> {
    return this.#deps.verdicts.logs();
  }

  /** Damaged files found by the last verification. */
  async useless(): Promise<ReadonlySet<string>> {
    return uselessFiles((await this.report()) ?? { damage: [] });
  }

  /** Stores the result of a verification and repairs the damage found. */
  async note(verdict: LogVerdict): Promise<void> {
    const { verdicts, changes, clock } = this.#deps;
    const report = { ...verdict, at: clock.now() };
    await changes.run(BACKGROUND, (change) => void change.add(verdicts.setLogs(report)));
    if (verdict.damagedFiles > 0) await this.#writer?.mend(uselessFiles(verdict));
  }

  /** See LogLines. Throws `target_in_use`. */
  putBase(
    logs: LogLines,
    {
      server,
      line,
      copy,
    }: { readonly server: string; readonly line: string; readonly copy: () => Promise<BaseCopy> },
    signal: AbortSignal,
  ): Promise<LogBase> {
    const { lease, sweeping } = this.#deps;
    return sweeping.run(signal, () =>
      lease.during(async (holding) => {
        const either = AbortSignal.any([signal, holding.signal]);
        const into = (await this.#trusted()) ?? logs;
        return into.putBase(server, line, { copy: await copy(), signal: either });
      }),
    );
  }

  /** The logs of a repository that stores known damaged pieces again. */
  async #trusted(): Promise<LogLines | undefined> {
    const { store, location } = this.#deps;
    const { repository } = this.#known ?? {};
    const files = await store.damagedFiles(location);
    repository?.distrust(new Set(files.map((file) => file.slice(file.lastIndexOf('/') + 1))));
    return repository?.logs;
  }

  /** See LogLines; removes nothing while another Cloudlet writes there. Throws `target_in_use`. */
  trim(logs: LogLines, server: string, keeping: Keeping): Promise<void> {
    return this.#deps.lease.during(() => logs.trim(server, keeping));
  }
}
