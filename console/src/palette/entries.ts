/** Entries of the palette: fixed actions, and resources found by name. */
import type { NavigateOptions } from '@tanstack/react-router';
import type { ComponentType, SVGProps } from 'react';

export interface PaletteEntry {
  /** Unique. */
  readonly id: string;
  readonly label: string;
  /** Second line: the kind of entry. */
  readonly note?: string;
  readonly icon: ComponentType<SVGProps<SVGSVGElement>>;
  /** The page to open, or the action to run. */
  readonly open: NavigateOptions | (() => unknown);
}

export interface PaletteSource {
  readonly actions: readonly PaletteEntry[];
  readonly isForAdmins?: boolean;
  /** Finds resources by name, about ten at most. `signal`: the text has changed. */
  readonly find?: (words: string, signal: AbortSignal) => Promise<readonly PaletteEntry[]>;
}

/** True when `label` has every word of `words`, in any order and case: `shop que` finds `Query shop`. */
export function matches(label: string, words: string): boolean {
  return finder(words)(label);
}

/** The same for many labels. */
export function finder(words: string): (label: string) => boolean {
  const wanted = words.toLowerCase().split(/\s+/);
  return (label) => {
    const has = label.toLowerCase();
    return wanted.every((word) => has.includes(word));
  };
}

/** The first `most` of these that match, of perhaps ten thousand. */
export function firstOf<Item, Found>(
  items: readonly Item[],
  most: number,
  find: (item: Item) => Found | undefined,
): readonly Found[] {
  const found: Found[] = [];
  for (const item of items) {
    if (found.length === most) break;
    const one = find(item);
    if (one !== undefined) found.push(one);
  }
  return found;
}
