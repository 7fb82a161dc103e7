/** Cache of one connection's compiled statements: compiling dominates small statements. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';

/** `close()` finalizes it: statements use more memory than the garbage collector knows of. */
export type Compiled = StatementSync & { close(): void };

const KEPT = 50;
/** Longer texts are rarely repeated. */
const MAX_LENGTH = 4_096;

export class CompiledStatements {
  readonly #db: DatabaseSync;
  /** Keyed by text, least recently used first. */
  readonly #kept = new Map<string, Compiled>();

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** Return it with release(). */
  take(sql: string): Compiled {
    const kept = this.#kept.get(sql);
    this.#kept.delete(sql);
    return kept ?? this.#compile(sql);
  }

  /** `isLight`: its bindings may stay in memory. */
  release(sql: string, compiled: Compiled, isLight: boolean): void {
    if (!isLight || sql.length > MAX_LENGTH || this.#kept.has(sql)) {
      compiled.close();
      return;
    }
    this.#kept.set(sql, compiled);
    if (this.#kept.size <= KEPT) return;
    const [[oldest, statement] = []] = this.#kept;
    if (oldest !== undefined) this.#kept.delete(oldest);
    statement?.close();
  }

  #compile(sql: string): Compiled {
    const compiled = this.#db.prepare(sql) as Compiled;
    compiled.setReturnArrays(true);
    compiled.setReadBigInts(true);
    return compiled;
  }
}
