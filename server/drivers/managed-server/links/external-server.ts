/** The operator's database server: it is neither started nor stopped, only checked. */
import { SEE_LOG } from '../../../platform/alarms.ts';
import type { AppError } from '../../../platform/errors.ts';
import type { EngineServer } from '../database-server.ts';
import type { ManagedServerDeps } from '../managed-server.ts';

export interface ExternalServerDeps {
  /** The engine's name. */
  readonly name: string;
  readonly alarms: ManagedServerDeps['alarms'];
  /** Connects once. Throws `engine_unavailable` with the problem and the fix. */
  readonly check: () => Promise<void>;
  /** Called once, when the server is first found usable. */
  readonly begin: () => Promise<void>;
}

const CHECK_MS = 5000;

export class ExternalServer implements EngineServer {
  readonly log = null;
  readonly pid = null;
  readonly isMade = true;
  readonly #deps: ExternalServerDeps;
  #problem: AppError | null = null;
  #isUp = false;
  #hasBegun = false;
  #asking: Promise<void> | null = null;
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: ExternalServerDeps) {
    this.#deps = deps;
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  get problem(): AppError | null {
    return this.#problem;
  }

  up(): Promise<void> {
    if (this.#isUp) return Promise.resolve();
    if (this.#timer === undefined) {
      this.#timer = setInterval(() => void this.#ask().catch(() => {}), CHECK_MS);
      this.#timer.unref();
    }
    return this.#ask();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#asking?.catch(() => {});
    this.#isUp = false;
  }

  #ask(): Promise<void> {
    this.#asking ??= this.#check().finally(() => {
      this.#asking = null;
    });
    return this.#asking;
  }

  async #check(): Promise<void> {
    const { name, alarms, check, begin } = this.#deps;
    const code = `${name}_unavailable`;
    try {
      await check();
      this.#isUp = true;
      if (!this.#hasBegun) await begin();
      this.#hasBegun = true;
      this.#problem = null;
      alarms.clear(code);
    } catch (error) {
      this.#isUp = false;
      this.#problem = error as AppError;
      alarms.raise(code, this.#problem.message, this.#problem.hint ?? SEE_LOG);
      throw error;
    }
  }
}
