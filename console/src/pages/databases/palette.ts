import { CircleStackIcon, PlusIcon } from '@heroicons/react/24/outline';
import { cloud } from '../../cloud.ts';
import type { PaletteSource } from '../../palette/sources.ts';
import { text } from '../../texts/text.ts';

const FOUND_MAX = 8;

export const databasesPalette: PaletteSource = {
  actions: [
    { id: 'create-database', label: text.databases.create, icon: PlusIcon, open: { to: '/databases/new' } },
  ],
  find: async (words) => {
    const databases = await cloud.databases.list().all();
    return databases
      .filter(({ name }) => name.includes(words.toLowerCase()))
      .slice(0, FOUND_MAX)
      .map(({ database_id, name }) => ({
        id: database_id,
        label: name,
        note: text.databases.database,
        icon: CircleStackIcon,
        open: { to: '/databases/$database', params: { database: database_id } },
      }));
  },
};
