/**
 * Answers of children as values. An answer of 4 MiB takes the event loop some 15 ms from the socket of the
 * child to that of its reader, in which nobody else is answered: needless work is left out, and the rest is
 * done in two turns.
 */
import { isAscii } from 'node:buffer';
import { setImmediate as turn } from 'node:timers/promises';

/** Below this the conversion takes a fraction of a millisecond. */
const LARGE_BYTES = 256 * 1024;

/** Parses JSON in UTF-8. After a large text others have their turn before the caller goes on. */
export async function parsedAnswer(json: Buffer): Promise<unknown> {
  // ASCII, which most JSON is, needs no decoding.
  const value: unknown = JSON.parse(json.toString(isAscii(json) ? 'latin1' : 'utf8'));
  if (json.length >= LARGE_BYTES) await othersTurn();
  return value;
}

/** Lets others go first: sockets are read between the first turn and the second. */
async function othersTurn(): Promise<void> {
  await turn();
  await turn();
}
