/** Reads metrics of resources from their engines, and stores them as samples. */
import type { Metadata, Statement } from '../metadata/metadata.ts';
import { SampleUpkeep } from '../metadata/sample-history.ts';
import type { SamplesStore } from '../metadata/samples-store.ts';
import { eachOf } from '../platform/concurrency.ts';

export interface ReadingsDeps<Figure extends string> {
  readonly metadata: Metadata;
  readonly samples: SamplesStore<Figure>;
  /** Timeout of a single reading, ms. */
  readonly timeoutMs?: number | undefined;
}

const TIMEOUT_MS = 2000;
const STATEMENTS_PER_COMMIT = 1000;
/** Concurrent readings. */
export const AT_ONCE = 16;

export class Readings<Figure extends string> {
  readonly #deps: ReadingsDeps<Figure>;
  readonly #upkeep: SampleUpkeep<Figure>;
  readonly #underWay = new Set<string>();

  constructor(deps: ReadingsDeps<Figure>) {
    this.#deps = deps;
    this.#upkeep = new SampleUpkeep(deps.samples);
  }

  /**
   * The result of `ask`; null on failure or timeout. A hanging engine is not asked again about the
   * same resource until it has answered.
   */
  async take<T>(id: string, ask: () => Promise<T>): Promise<T | null> {
    if (this.#underWay.has(id)) return null;
    this.#underWay.add(id);
    const answer = (async () => ask())()
      .catch(() => null)
      .finally(() => this.#underWay.delete(id));
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<null>((resolve) => {
      timer = setTimeout(() => resolve(null), this.#deps.timeoutMs ?? TIMEOUT_MS);
    });
    const reading = await Promise.race([answer, patience]);
    clearTimeout(timer);
    return reading;
  }

  /** Reads each of `rows`, and stores what all readings give. `at`: start of the round, ms since 1970. */
  async round<Row>(
    rows: readonly Row[],
    at: number,
    read: (row: Row) => Promise<readonly Statement[]>,
  ): Promise<void> {
    const statements: Statement[] = [];
    await eachOf(rows, AT_ONCE, async (row) => void statements.push(...(await read(row))));
    const upkeep = this.#upkeep.due(at);
    if (statements.length === 0 && upkeep.isQuiet) return;
    const all = [...upkeep.statements, ...statements];
    for (let i = 0; i < all.length; i += STATEMENTS_PER_COMMIT) {
      await this.#deps.metadata.commit(all.slice(i, i + STATEMENTS_PER_COMMIT));
    }
    this.#upkeep.done(at);
  }
}
