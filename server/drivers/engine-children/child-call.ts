/** A call as the child sees it, which its handlers answer. */
export interface ChildCall {
  /** Members that came with `kind`. */
  readonly head: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
  /** Aborts when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  /**
   * Sends a part of the answer once all that it may tell of is durable. Resolves when it was passed on, and
   * rejects when nobody waits any more: there is never more than one on its way.
   */
  part(head: Readonly<Record<string, unknown>>, body?: Uint8Array): Promise<void>;
}

export interface ChildReply {
  readonly head: Readonly<Record<string, unknown>>;
  readonly body?: Uint8Array;
}

/**
 * Answers a call. What it resolves with is sent once all that it may tell of is durable, so a handler knows
 * nothing of that. A handler lets the event loop turn (setImmediate) between statements when they took more
 * than TURN_MS: a child that is silent for the time that one statement may take is killed.
 */
export type Handler = (call: ChildCall) => Promise<ChildReply>;

export const TURN_MS = 50;

export interface Room {
  readonly sizeLimitBytes: number;
  /** False: the file keeps its size. What is deleted makes room for what is written. */
  readonly mayGrow: boolean;
}

/** Since the child began. */
export interface Counters {
  /** Sessions that are open. */
  connections: number;
  statements: number;
  rowsReturned: number;
  rowsWritten: number;
}
