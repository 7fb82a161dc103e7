/** Selection in a list: single, range, or all loaded entries. */
import { useCallback, useRef, useState } from 'react';
import type { BucketEntry } from '../../../../../sdk/index.ts';

/** Keyed by name, including folders. */
export type Chosen = ReadonlyMap<string, BucketEntry>;

export interface Selection {
  readonly chosen: Chosen;
  /** `isRange`: includes all entries since the previous one. */
  readonly choose: (entry: BucketEntry, isChosen: boolean, isRange?: boolean) => void;
  readonly chooseAll: () => void;
  readonly clear: () => void;
}

/** `canChoose`: which entries can be selected. */
export function useSelection(
  entries: readonly BucketEntry[],
  canChoose: (entry: BucketEntry) => boolean,
): Selection {
  const [chosen, setChosen] = useState<Chosen>(new Map());
  const last = useRef<string>(undefined);
  const list = useRef({ entries, canChoose });
  list.current = { entries, canChoose };
  const choose = useCallback((entry: BucketEntry, isChosen: boolean, isRange = false) => {
    const { entries, canChoose } = list.current;
    const some = isRange ? between(entries, last.current, entry) : [entry];
    last.current = entry.name;
    setChosen((before) => {
      const next = new Map(before);
      for (const one of some) {
        if (!isChosen) next.delete(one.name);
        else if (canChoose(one)) next.set(one.name, one);
      }
      return next;
    });
  }, []);
  const chooseAll = useCallback(() => {
    const { entries, canChoose } = list.current;
    setChosen(new Map(entries.filter(canChoose).map((entry) => [entry.name, entry])));
  }, []);
  const clear = useCallback(() => setChosen(new Map()), []);
  return { chosen, choose, chooseAll, clear };
}

/** Entries between two names, in either order. */
function between(
  entries: readonly BucketEntry[],
  from: string | undefined,
  to: BucketEntry,
): readonly BucketEntry[] {
  const ends = [entries.findIndex(({ name }) => name === from), entries.indexOf(to)];
  const [first = -1, end = -1] = ends.sort((a, b) => a - b);
  return first < 0 ? [to] : entries.slice(first, end + 1);
}
