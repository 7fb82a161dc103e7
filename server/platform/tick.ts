/**
 * Batches the work of many requests in one turn of the event loop: all of them take their first step, then
 * all the second. Run one after the other, each request goes through the whole program, and a small upload
 * spends half its time on code that has just left the processor's caches (decisions/0013).
 */

let turn: Promise<void> | undefined;

/** Resolves at the end of this event-loop turn, for all callers at once. */
export function endOfTick(): Promise<void> {
  turn ??= new Promise((resolve) => {
    setImmediate(() => {
      turn = undefined;
      resolve();
    });
  });
  return turn;
}
