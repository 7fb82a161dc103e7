import { ArchiveBoxIcon, DocumentIcon, PlusIcon } from '@heroicons/react/24/outline';
import type { Bucket } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { matches } from '../../palette/matches.ts';
import type { PaletteEntry, PaletteSource } from '../../palette/sources.ts';
import { sayBytes } from '../../parts/size.ts';
import { queryClient } from '../../queries.ts';
import { text } from '../../texts/text.ts';
import { bucketsQuery } from './queries.ts';

const FOUND_MAX = 8;
/** The fullest ones: each is a search of its own. */
const SEARCHED_BUCKETS = 8;
/** Fewer letters are in nearly every name. */
const OBJECT_LETTERS = 3;

export const storagePalette: PaletteSource = {
  actions: [
    {
      id: 'create-bucket',
      label: text.storage.createBucket,
      icon: PlusIcon,
      open: { to: '/storage', search: { create: true } },
    },
  ],
  find: async (words, signal) => {
    const buckets = await queryClient.fetchQuery(bucketsQuery);
    const named = buckets
      .filter(({ name }) => matches(name, words))
      .slice(0, FOUND_MAX)
      .map(bucketEntry);
    if (words.length < OBJECT_LETTERS) return named;
    const fullest = buckets
      .filter(({ object_count }) => object_count > 0)
      .toSorted((a, b) => b.object_count - a.object_count)
      .slice(0, SEARCHED_BUCKETS);
    const objects = await Promise.all(fullest.map(({ name }) => objectsIn(name, words, signal)));
    return [...named, ...objects.flat().slice(0, FOUND_MAX)];
  },
};

function bucketEntry({ name }: Bucket): PaletteEntry {
  return {
    id: `bucket-${name}`,
    label: name,
    note: text.storage.bucket,
    icon: ArchiveBoxIcon,
    open: { to: '/storage/$bucket', params: { bucket: name } },
  };
}

async function objectsIn(bucket: string, search: string, signal: AbortSignal) {
  const { items } = await cloud.objects.browse(bucket, { search }, { signal }).page({ limit: FOUND_MAX });
  return items.flatMap(({ name, object }) => {
    if (object === null) return [];
    const prefix = name.slice(0, name.lastIndexOf('/') + 1);
    const entry: PaletteEntry = {
      id: `object-${object.id}`,
      label: name.slice(prefix.length) || name,
      note: `${bucket}/${prefix} · ${sayBytes(object.size)}`,
      icon: DocumentIcon,
      open: {
        to: '/storage/$bucket',
        params: { bucket },
        search: { object: object.id, ...(prefix === '' ? {} : { prefix }) },
      },
    };
    return entry;
  });
}
