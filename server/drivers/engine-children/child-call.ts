/** A call inside the child, handled by a handler. */
export interface ChildCall {
  /** Members sent with `kind`. */
  readonly head: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
  /** Aborts when the caller no longer waits. */
  readonly signal: AbortSignal;
  /**
   * Sends a part of the answer once everything in it is durable. Resolves when it was passed on,
   * with the bytes that the caller answers, and rejects when the caller gave up; one part is in flight
   * at a time.
   */
  part(head: Readonly<Record<string, unknown>>, body?: Uint8Array): Promise<Uint8Array>;
}

export interface ChildReply {
  readonly head: Readonly<Record<string, unknown>>;
  readonly body?: Uint8Array;
}

/**
 * Handles a call. Its result is sent once everything in it is durable, so handlers need not wait. A
 * handler yields to the event loop (setImmediate) between statements that took more than TURN_MS in
 * total: a child that is silent for the statement timeout is killed.
 */
export type Handler = (call: ChildCall) => Promise<ChildReply>;

export const TURN_MS = 50;

export interface SizeLimit {
  readonly sizeLimitBytes: number;
  /** False: the file keeps its size. Space of deleted data is reused. */
  readonly mayGrow: boolean;
}

/** Totals since the child started. */
export interface Counters {
  /** Open sessions. */
  connections: number;
  statements: number;
  rowsReturned: number;
  rowsWritten: number;
}
