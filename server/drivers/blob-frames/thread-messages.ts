/** Messages between the event loop and worker threads. Bytes travel in shared slots, never in messages. */
import type { FaultRecord } from './blob-fault.ts';

export interface Numbered<T> {
  readonly id: number;
  readonly body: T;
}

/**
 * A request on its way. To share memory with a message costs many times what the rest of it does, so a
 * slot is shared with a thread once, under a number, and only named from then on.
 */
export interface Sent {
  readonly id: number;
  /** The request, its slot left out. */
  readonly body: object;
  /** Number of the request's slot, or null. */
  readonly slot: number | null;
  /** The first time the thread meets that slot. */
  readonly memory: SharedArrayBuffer | null;
}

/** The slot is not used elsewhere any more. */
export interface Forget {
  readonly forget: number;
}

export type Answer = { readonly reply: unknown } | { readonly fault: FaultRecord };
