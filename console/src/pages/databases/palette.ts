import { CircleStackIcon, CommandLineIcon, PlusIcon } from '@heroicons/react/24/outline';
import { matches } from '../../palette/matches.ts';
import type { PaletteEntry, PaletteSource } from '../../palette/sources.ts';
import { queryClient } from '../../queries.ts';
import { text } from '../../texts/text.ts';
import { databasesQuery } from './queries.ts';

const FOUND_MAX = 8;
const { databases } = text;

export const databasesPalette: PaletteSource = {
  actions: [
    { id: 'create-database', label: databases.create, icon: PlusIcon, open: { to: '/databases/new' } },
  ],
  find: async (words) => {
    const all = await queryClient.fetchQuery(databasesQuery);
    return all
      .flatMap(({ database_id: database, name, engine }): PaletteEntry[] => [
        {
          id: database,
          label: name,
          note: `${databases.database} · ${databases.engines[engine]}`,
          icon: CircleStackIcon,
          open: { to: '/databases/$database', params: { database } },
        },
        {
          id: `query-${database}`,
          label: databases.queryOf(name),
          icon: CommandLineIcon,
          open: { to: '/databases/$database', params: { database }, search: { tab: 'query' } },
        },
      ])
      .filter(({ label }) => matches(label, words))
      .slice(0, FOUND_MAX);
  },
};
