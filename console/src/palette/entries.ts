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
  const has = label.toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => has.includes(word));
}
