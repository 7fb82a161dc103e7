/** Reads the index of a component: its files, and the pieces of each. */
import type { Component, Entry } from './manifest.ts';
import { Damaged } from './piece-box.ts';
import type { Repository } from './repository.ts';

/**
 * Entries in the order of writing. Throws Damaged, unless a callback receives the damage: then entries in or
 * across the edges of a damaged index piece are skipped.
 */
export async function* entriesOf(
  repository: Repository,
  component: Component,
  onDamaged?: (damaged: Damaged, piece: string) => void,
): AsyncGenerator<Entry> {
  /** Bytes of a line that continues in the next piece; undefined: its beginning is lost. */
  let rest: Buffer | undefined = Buffer.alloc(0);
  for (const piece of component.index) {
    try {
      for await (const bytes of repository.read([piece])) {
        const text: Buffer =
          rest === undefined ? bytes.subarray(endOfLine(bytes)) : Buffer.concat([rest, bytes]);
        const end = text.lastIndexOf(NEWLINE) + 1;
        rest = text.subarray(end);
        for (const line of text.toString('utf8', 0, end).split('\n')) {
          if (line !== '') yield JSON.parse(line) as Entry;
        }
      }
    } catch (error) {
      if (onDamaged === undefined || !(error instanceof Damaged)) throw error;
      onDamaged(error, piece);
      rest = undefined;
    }
  }
}

const NEWLINE = 10;

/** Offset of the next line. */
function endOfLine(bytes: Buffer): number {
  const at = bytes.indexOf(NEWLINE);
  return at === -1 ? bytes.length : at + 1;
}
