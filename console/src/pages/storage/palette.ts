import { ArchiveBoxIcon, PlusIcon } from '@heroicons/react/24/outline';
import { cloud } from '../../cloud.ts';
import type { PaletteSource } from '../../palette/sources.ts';
import { text } from '../../texts/text.ts';

const FOUND_MAX = 8;

export const storagePalette: PaletteSource = {
  actions: [
    {
      id: 'create-bucket',
      label: text.storage.createBucket,
      icon: PlusIcon,
      open: { to: '/storage', search: { create: true } },
    },
  ],
  find: async (words) => {
    const buckets = await cloud.buckets.list().all();
    return buckets
      .filter(({ name }) => name.includes(words.toLowerCase()))
      .slice(0, FOUND_MAX)
      .map(({ name }) => ({
        id: `bucket-${name}`,
        label: name,
        note: text.storage.bucket,
        icon: ArchiveBoxIcon,
        open: { to: '/storage/$bucket', params: { bucket: name } },
      }));
  },
};
