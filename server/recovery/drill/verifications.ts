/** Verifies recovery points one at a time, even while another point is being created. */
import { BACKGROUND, type Changes } from '../../metadata/change.ts';
import type { Clock } from '../../platform/clock.ts';
import { isAppError } from '../../platform/errors.ts';
import type { LogArchive } from '../logs/log-archive.ts';
import { verifyLogs } from '../logs/log-verification.ts';
import type { PointEvents } from '../points/point-view.ts';
import type { Repository } from '../repository/repository.ts';
import type { PointRow, RecoveryStore } from '../store.ts';
import { PointWork } from './point-work.ts';
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

export class Verifications {
  readonly #deps: VerificationsDeps;
  /** Progress is in percent. */
  readonly work: PointWork<number>;

  constructor(deps: VerificationsDeps) {
    this.#deps = deps;
    const { onError, onEnd } = deps;
    this.work = new PointWork({
      noun: 'verification',
      participle: 'verified',
      first: 0,
      onError,
      onEnd,
    });
  }

  /**
   * Starts a verification; does nothing if it is running already. Throws `point_invalid_state`,
   * `point_in_progress` if another point is being verified, `target_unavailable`.
   */
  async begin(row: PointRow): Promise<void> {
    await this.work.begin(row, async () => {
      const repository = await this.#deps.repository();
      return (signal) => this.#verify(row.point_id, { repository, signal });
    });
  }

  async #verify(
    pointId: string,
    { repository, signal }: { readonly repository: Repository; readonly signal: AbortSignal },
  ): Promise<void> {
    const { store, changes, clock, onError, news, logs, location } = this.#deps;
    const onProgress = ({ bytes, totalBytes }: { bytes: number; totalBytes: number }) => {
      this.work.note(Math.min(99, Math.floor((bytes / totalBytes) * 1000) / 10));
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
