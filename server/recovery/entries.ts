/** Reads the index of a component: all its files, and the pieces that each is made of. */
import type { Component, Entry } from './manifest.ts';
import { Damaged } from './piece-box.ts';
import type { Repository } from './repository.ts';

/**
 * In the order in which they were written. Throws Damaged, unless somebody is told of it: then what the
 * damaged piece of the index lists is left out, and those on its edges.
 */
export async function* entriesOf(
  repository: Repository,
  component: Component,
  onDamaged?: (damaged: Damaged, piece: string) => void,
): AsyncGenerator<Entry> {
  /** Bytes of a line whose end is in the next piece; undefined: its beginning is lost. */
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

/** Where the next line begins. */
function endOfLine(bytes: Buffer): number {
  const at = bytes.indexOf(NEWLINE);
  return at === -1 ? bytes.length : at + 1;
}
