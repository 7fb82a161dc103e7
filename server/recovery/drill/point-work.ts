/** Work on recovery points in the background, one point at a time: drills and verifications. */
import { AppError } from '../../platform/errors.ts';
import { LASTING, type PointRow } from '../store.ts';

export interface PointWorkDeps<Progress> {
  /** Name in error messages: `drill`. */
  readonly noun: string;
  /** Participle in error messages: `drilled`. */
  readonly participle: string;
  /** Progress at the start. */
  readonly first: Progress;
  readonly onError: (pointId: string, error: unknown) => void;
  /** Called when the work has ended. */
  readonly onEnd: () => void;
}

/** Resolves when the work has ended, or was cancelled. */
type Work = (signal: AbortSignal) => Promise<void>;

interface Running {
  readonly pointId: string;
  readonly cancel: AbortController;
  readonly ended: Promise<void>;
}

export class PointWork<Progress> {
  readonly #deps: PointWorkDeps<Progress>;
  #beginning: { readonly pointId: string; readonly begun: Promise<void> } | undefined;
  #running: Running | undefined;
  #progress: Progress;

  constructor(deps: PointWorkDeps<Progress>) {
    this.#deps = deps;
    this.#progress = deps.first;
  }

  get isBusy(): boolean {
    return this.#running !== undefined || this.#beginning !== undefined;
  }

  /** null: no work on the point is running. */
  progressOf(pointId: string): Progress | null {
    return this.#running?.pointId === pointId ? this.#progress : null;
  }

  /** Sets the progress of the running work. */
  note(progress: Progress): void {
    this.#progress = progress;
  }

  /**
   * Starts the work; does nothing if it is running on this point already. Throws
   * `point_invalid_state`, `point_in_progress` for another point, and the errors of `prepare`.
   */
  async begin({ point_id: pointId, state }: PointRow, prepare: () => Promise<Work>): Promise<void> {
    const { noun, participle } = this.#deps;
    if (!LASTING.includes(state)) {
      throw new AppError('point_invalid_state', `The recovery point ${pointId} is ${state}`, {
        extra: { state },
        hint: `Only complete points can be ${participle}`,
      });
    }
    const current = this.#running ?? this.#beginning;
    if (current !== undefined && current.pointId !== pointId) {
      throw new AppError('point_in_progress', `Another recovery point is being ${participle}`, {
        extra: { point_id: current.pointId },
        hint: `Wait until that ${noun} ends, or cancel it`,
      });
    }
    if (this.#running !== undefined) return;
    this.#beginning ??= { pointId, begun: this.#begin(pointId, prepare) };
    await this.#beginning.begun;
  }

  /** Resolves when the work on that point has ended, or after `ms`. */
  async wait(pointId: string, ms: number): Promise<void> {
    const running = this.#running;
    if (running?.pointId !== pointId) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, ms).unref();
    });
    await Promise.race([running.ended, late]);
    clearTimeout(timer);
  }

  /** False if no work on the point is running. The previous result is kept. */
  async cancel(pointId: string): Promise<boolean> {
    if (this.#running?.pointId !== pointId) return false;
    await this.close();
    return true;
  }

  /** Cancels the work in progress. */
  async close(): Promise<void> {
    this.#running?.cancel.abort();
    await this.#running?.ended;
  }

  async #begin(pointId: string, prepare: () => Promise<Work>): Promise<void> {
    try {
      const work = await prepare();
      const cancel = new AbortController();
      this.#progress = this.#deps.first;
      const ended = work(cancel.signal)
        .catch((error: unknown) => this.#deps.onError(pointId, error))
        .finally(() => {
          this.#running = undefined;
          this.#deps.onEnd();
        });
      this.#running = { pointId, cancel, ended };
    } finally {
      this.#beginning = undefined;
    }
  }
}
