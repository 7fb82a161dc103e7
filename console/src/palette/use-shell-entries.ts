/** Actions of the palette that lead nowhere: colour scheme, sign out. */
import {
  ArrowRightStartOnRectangleIcon,
  BookOpenIcon,
  ComputerDesktopIcon,
  MoonIcon,
  SunIcon,
} from '@heroicons/react/24/outline';
import { useMantineColorScheme } from '@mantine/core';
import { useSignOut } from '../shell/use-sign-out.ts';
import { text } from '../texts/text.ts';
import type { PaletteEntry } from './sources.ts';

const { palette, scheme, signOut, apiDocs } = text.shell;
const SCHEMES = [
  { value: 'light', name: scheme.light, icon: SunIcon },
  { value: 'dark', name: scheme.dark, icon: MoonIcon },
  { value: 'auto', name: scheme.auto, icon: ComputerDesktopIcon },
] as const;

export function useShellEntries(): readonly PaletteEntry[] {
  const { setColorScheme } = useMantineColorScheme();
  const leave = useSignOut();
  return [
    ...SCHEMES.map(({ value, name, icon }) => ({
      id: `scheme-${value}`,
      label: palette.colours(name),
      icon,
      open: () => setColorScheme(value),
    })),
    { id: 'docs', label: apiDocs, icon: BookOpenIcon, open: () => location.assign('/api/docs') },
    { id: 'sign-out', label: signOut, icon: ArrowRightStartOnRectangleIcon, open: () => leave.mutate() },
  ];
}
