/** The logs of database servers in the recovery target, beside points that are made and swept there. */
import type { Clock } from '../platform/clock.ts';
import type { Semaphore } from '../platform/concurrency.ts';
import type { Lease } from './lease.ts';
import type { BaseCopy, Keeping, LogBase, LogLines } from './log-lines.ts';
import type { Repository } from './repository.ts';

export interface LogArchiveDeps {
  /** undefined: none yet, because no point was created. Throws `target_unavailable`. */
  readonly find: () => Promise<Repository | undefined>;
  readonly lease: Pick<Lease, 'during'>;
  /** Held by whoever removes pieces that nothing refers to. */
  readonly sweeping: Semaphore;
  readonly clock: Pick<Clock, 'uptime'>;
}

/** The repository is looked for again after so long. */
const KNOWN_MS = 60_000;

export class LogArchive {
  readonly #deps: LogArchiveDeps;
  #known: { readonly repository: Repository; readonly at: number } | undefined;

  constructor(deps: LogArchiveDeps) {
    this.#deps = deps;
  }

  /** undefined: there is no recovery point yet. Throws `target_unavailable`, `target_in_use`. */
  async open(): Promise<LogLines | undefined> {
    const { find, clock } = this.#deps;
    if (this.#known === undefined || clock.uptime() - this.#known.at > KNOWN_MS) {
      const repository = await find();
      this.#known = repository && { repository, at: clock.uptime() };
    }
    return this.#known?.repository.logs;
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
        return logs.putBase(server, line, { copy: await copy(), signal: either });
      }),
    );
  }

  /** See LogLines; removes nothing while another Cloudlet writes there. Throws `target_in_use`. */
  trim(logs: LogLines, server: string, keeping: Keeping): Promise<void> {
    return this.#deps.lease.during(() => logs.trim(server, keeping));
  }
}
