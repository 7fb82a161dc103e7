/** ⌘K: opens any page, finds any resource, starts any action. */
import {
  ArrowRightStartOnRectangleIcon,
  BookOpenIcon,
  ComputerDesktopIcon,
  MagnifyingGlassIcon,
  MoonIcon,
  QuestionMarkCircleIcon,
  SunIcon,
} from '@heroicons/react/24/outline';
import { useMantineColorScheme } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { Spotlight, spotlight } from '@mantine/spotlight';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { accountPalette } from '../pages/account/routes.ts';
import { administrationPalette } from '../pages/administration/routes.ts';
import { billingPalette } from '../pages/billing/routes.ts';
import { databasesPalette } from '../pages/databases/routes.ts';
import { machinesPalette } from '../pages/machines/routes.ts';
import { recoveryPalette } from '../pages/recovery/routes.ts';
import { storagePalette } from '../pages/storage/routes.ts';
import type { AREAS } from '../shell/areas.ts';
import { useSignOut } from '../shell/one-account.ts';
import { text } from '../texts/text.ts';
import { matches, type PaletteEntry, type PaletteSource } from './entries.ts';

/** One line for each area. */
const SOURCES: readonly PaletteSource[] = [
  storagePalette,
  machinesPalette,
  databasesPalette,
  billingPalette,
  accountPalette,
  recoveryPalette,
  administrationPalette,
];
const { palette, scheme, signOut, apiDocs, keys } = text.shell;
/** Debounce, ms. */
const TYPING_MS = 150;

export const openPalette = () => spotlight.open();

interface PaletteProps {
  readonly areas: readonly (typeof AREAS)[number][];
  readonly isAdmin: boolean;
  /** Shows the sheet of keys. */
  readonly onKeys: () => void;
}

export function Palette({ areas, isAdmin, onKeys }: PaletteProps) {
  const [words, setWords] = useState('');
  const sources = SOURCES.filter(({ isForAdmins }) => isAdmin || isForAdmins !== true);
  const found = useFound(words.trim(), sources);
  const shown = (entries: readonly PaletteEntry[]) =>
    entries.filter(({ label }) => matches(label, words.trim()));
  const pages = areas.map(({ to, label, icon }): PaletteEntry => ({ id: to, label, icon, open: { to } }));
  const actions = [...sources.flatMap((source) => source.actions), ...useShellEntries(onKeys)];
  const groups = [
    { label: palette.found, entries: found.entries },
    { label: palette.pages, entries: shown(pages) },
    { label: palette.actions, entries: shown(actions) },
  ].filter(({ entries }) => entries.length > 0);
  useFirstSelected(groups.flatMap(({ entries }) => entries.map(({ id }) => id)).join());
  return (
    <Spotlight.Root
      query={words}
      onQueryChange={setWords}
      // See shell/shortcuts.tsx: Mantine's does nothing in fields.
      shortcut={null}
      scrollable
      maxHeight="min(480px, 70vh)"
      overlayProps={{ backgroundOpacity: 0.35, blur: 0 }}
      attributes={{ content: { 'aria-label': text.shell.search } }}
    >
      <Spotlight.Search
        placeholder={text.shell.searchPlaceholder}
        aria-label={text.shell.searchPlaceholder}
        leftSection={<MagnifyingGlassIcon width={18} />}
      />
      <Spotlight.ActionsList>
        {groups.map(({ label, entries }) => (
          <Spotlight.ActionsGroup key={label} label={label}>
            {entries.map((entry) => (
              <Entry key={entry.id} entry={entry} />
            ))}
          </Spotlight.ActionsGroup>
        ))}
        {groups.length === 0 && (
          <Spotlight.Empty>{found.isAsking ? palette.asking : text.shell.searchNothing}</Spotlight.Empty>
        )}
      </Spotlight.ActionsList>
    </Spotlight.Root>
  );
}

/** Enter opens the first entry, even after new results arrive. */
function useFirstSelected(ids: string): void {
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is about the entries that are shown
  useEffect(() => {
    const list = document.querySelector('.mantine-Spotlight-actionsList');
    if (list === null || list.querySelector('[data-selected]') !== null) return;
    list.querySelector('[data-action]')?.setAttribute('data-selected', 'true');
  }, [ids]);
}

function Entry({ entry: { label, note, icon: Icon, open } }: { entry: PaletteEntry }) {
  const navigate = useNavigate();
  return (
    <Spotlight.Action
      label={label}
      {...(note === undefined ? {} : { description: note })}
      leftSection={<Icon width={18} />}
      onClick={() => (typeof open === 'function' ? open() : navigate(open))}
    />
  );
}

/** Entries of all sources that match the typed words. */
function useFound(typed: string, sources: readonly PaletteSource[]) {
  const [words] = useDebouncedValue(typed, TYPING_MS);
  const isAsked = typed.length > 1;
  const { data, isFetching } = useQuery({
    queryKey: ['palette', words],
    enabled: isAsked && words.length > 1,
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      const lists = await Promise.allSettled(sources.map(({ find }) => find?.(words, signal) ?? []));
      return lists.flatMap((list) => (list.status === 'fulfilled' ? list.value : []));
    },
  });
  return { entries: isAsked ? (data ?? []) : [], isAsking: isAsked && (isFetching || words !== typed) };
}

const SCHEMES = [
  { value: 'light', name: scheme.light, icon: SunIcon },
  { value: 'dark', name: scheme.dark, icon: MoonIcon },
  { value: 'auto', name: scheme.auto, icon: ComputerDesktopIcon },
] as const;

/** Actions without a page: colour scheme, documentation, sign out. */
function useShellEntries(onKeys: () => void): readonly PaletteEntry[] {
  const { setColorScheme } = useMantineColorScheme();
  const leave = useSignOut();
  return [
    ...SCHEMES.map(({ value, name, icon }) => ({
      id: `scheme-${value}`,
      label: palette.colours(name),
      icon,
      open: () => setColorScheme(value),
    })),
    { id: 'keys', label: keys.title, icon: QuestionMarkCircleIcon, open: onKeys },
    { id: 'docs', label: apiDocs, icon: BookOpenIcon, open: { to: '/reference' } },
    { id: 'sign-out', label: signOut, icon: ArrowRightStartOnRectangleIcon, open: () => leave.mutate() },
  ];
}
