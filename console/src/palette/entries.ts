/** Entries of the palette, and where they come from: fixed actions, and resources found by words. */
import type { NavigateOptions } from '@tanstack/react-router';
import type { ComponentType, SVGProps } from 'react';

export interface PaletteEntry {
  /** Unique. */
  readonly id: string;
  readonly label: string;
  /** Second line: what kind of thing it is. */
  readonly note?: string;
  readonly icon: ComponentType<SVGProps<SVGSVGElement>>;
  /** The page to open, or the action to run. */
  readonly open: NavigateOptions | (() => unknown);
}

export interface PaletteSource {
  readonly actions: readonly PaletteEntry[];
  readonly isForAdmins?: boolean;
  /** Resources whose names have `words`; at most about ten. `signal`: other words were typed meanwhile. */
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
