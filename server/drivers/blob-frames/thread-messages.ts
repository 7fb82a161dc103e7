/** Messages between the event loop and worker threads. Bytes travel in shared slots, never in messages. */
import type { FaultRecord } from './blob-fault.ts';

export interface Numbered<T> {
  readonly id: number;
  readonly body: T;
}

/**
 * A request being sent. Sharing memory with a message costs many times more than the rest of it, so
 * a slot is shared with a thread once, under a number, and referenced by the number afterwards.
 */
export interface Sent {
  readonly id: number;
  /** The request without its slot. */
  readonly body: object;
  /** Number of the request's slot, or null. */
  readonly slot: number | null;
  /** Set when the thread receives that slot for the first time. */
  readonly memory: SharedArrayBuffer | null;
}

/** The slot is no longer used elsewhere. */
export interface Forget {
  readonly forget: number;
}

export type Answer = { readonly reply: unknown } | { readonly fault: FaultRecord };
