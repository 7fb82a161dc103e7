/** Verifies recovery points, one at a time, even while another is being created. */
import { BACKGROUND, type Changes } from '../../metadata/change.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError, isAppError } from '../../platform/errors.ts';
import type { LogArchive } from '../logs/log-archive.ts';
import { verifyLogs } from '../logs/log-verification.ts';
import type { PointEvents } from '../points/point-view.ts';
import type { Repository } from '../repository/repository.ts';
import type { PointRow, RecoveryStore } from '../store.ts';
import { PieceSet, verifyPoint } from './verification.ts';

export interface VerificationsDeps {
  readonly store: RecoveryStore;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly news: PointEvents;
  /** Opens the repository. Throws `target_unavailable`. */
  readonly repository: () => Promise<Repository>;
  readonly logs: Pick<LogArchive, 'heads' | 'note'>;
  readonly location: string;
  readonly onError: (pointId: string, error: unknown) => void;
  /** Called when a verification has ended. */
  readonly onEnd: () => void;
}

interface Running {
  readonly pointId: string;
  readonly cancel: AbortController;
  readonly ended: Promise<void>;
  percent: number;
}

export class Verifications {
  readonly #deps: VerificationsDeps;
  #running: Running | undefined;

  constructor(deps: VerificationsDeps) {
    this.#deps = deps;
  }

  /** Progress in percent; null when the point is not being verified. */
  percentOf(pointId: string): number | null {
    return this.#running?.pointId === pointId ? this.#running.percent : null;
  }

  /**
   * Begins a verification; does nothing when it is in progress already. Throws `point_invalid_state`,
   * `point_in_progress` when another is being verified, `target_unavailable`.
   */
  async begin({ point_id: pointId, state }: PointRow): Promise<void> {
    if (!['complete', 'verified', 'drilled', 'damaged'].includes(state)) {
      throw new AppError('point_invalid_state', `The recovery point ${pointId} is ${state}`, {
        extra: { state },
        hint: 'Only complete points can be verified',
      });
    }
    const repository = await this.#deps.repository();
    if (this.#running?.pointId === pointId) return;
    if (this.#running !== undefined) {
      throw new AppError('point_in_progress', 'Another recovery point is being verified', {
        extra: { point_id: this.#running.pointId },
        hint: 'Wait until that verification ends, or cancel it',
      });
    }
    const cancel = new AbortController();
    const running: Running = {
      pointId,
      cancel,
      percent: 0,
      ended: this.#verify(pointId, { repository, signal: cancel.signal })
        .catch((error: unknown) => this.#deps.onError(pointId, error))
        .finally(() => {
          this.#running = undefined;
          this.#deps.onEnd();
        }),
    };
    this.#running = running;
  }

  /** Resolves when the verification has ended, or after `ms`. */
  async wait(pointId: string, ms: number): Promise<void> {
    const running = this.#running;
    if (running?.pointId !== pointId) return;
    const late = new Promise((resolve) => setTimeout(resolve, ms).unref());
    await Promise.race([running.ended, late]);
  }

  /** False when it is not being verified. The previous result stays. */
  async cancel(pointId: string): Promise<boolean> {
    if (this.#running?.pointId !== pointId) return false;
    await this.close();
    return true;
  }

  /** Cancels the verification in progress. */
  async close(): Promise<void> {
    this.#running?.cancel.abort();
    await this.#running?.ended;
  }

  async #verify(
    pointId: string,
    { repository, signal }: { readonly repository: Repository; readonly signal: AbortSignal },
  ): Promise<void> {
    const { store, changes, clock, onError, news, logs, location } = this.#deps;
    const onProgress = ({ bytes, totalBytes }: { bytes: number; totalBytes: number }) => {
      if (this.#running) this.#running.percent = Math.min(99, Math.floor((bytes / totalBytes) * 1000) / 10);
    };
    try {
      const sound = new PieceSet();
      const verdict = await verifyPoint({ repository, pointId, signal, sound, onProgress });
      await changes.run(BACKGROUND, async (change) => {
        change.add(store.setVerdict(pointId, verdict, clock.now()));
        const row = await store.find(pointId);
        const damage = { damaged_files: verdict.damagedFiles };
        if (row === undefined) return;
        if (verdict.damagedFiles === 0) {
          change.addAll(await news.of('recovery_point.verified', { ...row, ...damage, state: 'verified' }));
        } else {
          change.addAll(await news.of('recovery_point.damaged', { ...row, ...damage, state: 'damaged' }));
        }
      });
      if (await store.isNewest(location, pointId))
        await logs.note(await verifyLogs({ repository, heads: logs.heads(), signal, sound }));
    } catch (error) {
      if (signal.aborted) return;
      onError(pointId, error);
      const why = isAppError(error) ? error.message : 'the log has the cause';
      const reason = `Verification failed: ${why}`;
      await changes.run(BACKGROUND, (change) => void change.add(store.setReason(pointId, reason)));
    }
  }
}
