/** ⌘K: go anywhere, find anything, start something. */

import { MagnifyingGlassIcon } from '@heroicons/react/24/outline';
import { Spotlight, spotlight } from '@mantine/spotlight';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useDeferredValue, useState } from 'react';
import type { AREAS } from '../shell/areas.ts';
import { text } from '../texts/text.ts';
import { PALETTE_SOURCES, type PaletteEntry } from './sources.ts';

const ENTRIES_SHOWN = 30;

export const openPalette = () => spotlight.open();

export function Palette({ areas }: { areas: readonly (typeof AREAS)[number][] }) {
  const navigate = useNavigate();
  const [words, setWords] = useState('');
  const found = useFound(useDeferredValue(words.trim()));
  const pages = areas.map(({ to, label, icon }): PaletteEntry => ({ id: to, label, icon, open: { to } }));
  const entries = [...pages, ...PALETTE_SOURCES.flatMap(({ actions }) => actions)]
    .filter(({ label }) => label.toLowerCase().includes(words.trim().toLowerCase()))
    .concat(found);
  return (
    <Spotlight.Root
      query={words}
      onQueryChange={setWords}
      shortcut="mod + K"
      attributes={{ content: { 'aria-label': text.shell.search } }}
    >
      <Spotlight.Search
        placeholder={text.shell.searchPlaceholder}
        aria-label={text.shell.searchPlaceholder}
        leftSection={<MagnifyingGlassIcon width={18} />}
      />
      <Spotlight.ActionsList>
        {entries.slice(0, ENTRIES_SHOWN).map(({ id, label, note, icon: Icon, open }) => (
          <Spotlight.Action
            key={id}
            label={label}
            {...(note === undefined ? {} : { description: note })}
            leftSection={<Icon width={18} />}
            onClick={() => navigate(open)}
          />
        ))}
        {entries.length === 0 && <Spotlight.Empty>{text.shell.searchNothing}</Spotlight.Empty>}
      </Spotlight.ActionsList>
    </Spotlight.Root>
  );
}

/** What the sources have under these words. */
function useFound(words: string): readonly PaletteEntry[] {
  const { data } = useQuery({
    queryKey: ['palette', words],
    enabled: words.length > 1,
    queryFn: async () => {
      const lists = await Promise.allSettled(PALETTE_SOURCES.map(({ find }) => find?.(words) ?? []));
      return lists.flatMap((list) => (list.status === 'fulfilled' ? list.value : []));
    },
  });
  return data ?? [];
}
