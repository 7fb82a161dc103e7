/** Sources of the palette, one per area: fixed actions, and resources found by words. */
import type { NavigateOptions } from '@tanstack/react-router';
import type { ComponentType, SVGProps } from 'react';
import { accountPalette } from '../pages/account/palette.ts';
import { administrationPalette } from '../pages/administration/palette.ts';
import { billingPalette } from '../pages/billing/palette.ts';
import { databasesPalette } from '../pages/databases/palette.ts';
import { machinesPalette } from '../pages/machines/palette.ts';
import { recoveryPalette } from '../pages/recovery/palette.ts';
import { storagePalette } from '../pages/storage/palette.ts';

export interface PaletteEntry {
  /** Unique. */
  readonly id: string;
  readonly label: string;
  /** Second line: what kind of thing it is. */
  readonly note?: string;
  readonly icon: ComponentType<SVGProps<SVGSVGElement>>;
  /** Where it leads, or what it does. */
  readonly open: NavigateOptions | (() => unknown);
}

export interface PaletteSource {
  readonly actions: readonly PaletteEntry[];
  readonly isForAdmins?: boolean;
  /** Resources whose names have `words`; at most about ten. `signal`: other words were typed meanwhile. */
  readonly find?: (words: string, signal: AbortSignal) => Promise<readonly PaletteEntry[]>;
}

/** One line for each area. */
export const PALETTE_SOURCES: readonly PaletteSource[] = [
  storagePalette,
  machinesPalette,
  databasesPalette,
  billingPalette,
  accountPalette,
  recoveryPalette,
  administrationPalette,
];
