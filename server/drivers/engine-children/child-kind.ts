/** An engine whose databases are child processes, as seen by its base class. */
import type { InsertBatch } from '../../databases/engine.ts';
import type { ChildProgram } from './child-host.ts';
import type { LoadedKind } from './load-file.ts';

/**
 * Properties of an engine and its children, which handle `query`, `change`, `scan`, `insert`, `tables`,
 * `copy`, `check`, `size_limit`.
 */
export interface ChildEngineKind {
  readonly program: ChildProgram;
  readonly version: string | null;
  readonly dump: { readonly format: string; readonly contentType: string };
  readonly loaded: LoadedKind;
  /** A batch as its children take it, as JSON. */
  readonly batch: (batch: InsertBatch) => unknown;
  /** Time that a statement gets to end after its timeout, before its process is killed, ms. */
  readonly spareMs: number;
  /** Default error name. */
  readonly errorName: string;
  /** Error code of a statement that exceeded its time; undefined: the engine has no time limit. */
  readonly timeLimitName?: string;
}
