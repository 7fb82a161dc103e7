/**
 * Deleting and restoring objects. If versions are kept, deleting is immediate and can be undone;
 * elsewhere the bytes would be lost, so it asks first.
 */

import { useMutation } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import type { StorageObject } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { Confirm } from '../../../parts/forms/dialog.tsx';
import { showDone, showRefusal } from '../../../parts/notices.tsx';
import { text } from '../../../texts/text.ts';
import { bucketsQuery } from '../queries.ts';
import { eachOf, objectsOf, patiently, type Target } from './many.ts';

interface DeleteOptions {
  readonly bucket: string;
  readonly isVersioned: boolean;
  readonly onDone: () => void;
}

/** Queries that show the objects of a bucket, or their size. */
export const changedIn = (bucket: string) => [{ queryKey: ['files', bucket] }, bucketsQuery];

export function useDelete({ bucket, isVersioned, onDone }: DeleteOptions) {
  const [asked, setAsked] = useState<readonly Target[]>([]);
  const meta = { invalidates: changedIn(bucket) };
  const undo = useMutation({ mutationFn: undelete, meta });
  const remove = useMutation({
    mutationFn: (targets: readonly Target[]) => deleteAll(bucket, targets),
    meta,
    onSuccess: ({ count, markers, failure }, targets) => {
      setAsked([]);
      onDone();
      const [first] = targets;
      const isOne = targets.length === 1 && first !== undefined;
      const said = isOne ? first.name.replace(/\/$/, '') : text.storage.files(count);
      if (failure !== undefined) return showRefusal(failure);
      showDone(text.storage.deleted(said), markers.length > 0 ? () => undo.mutate(markers) : undefined);
    },
  });
  const hasFolders = asked.some(({ id }) => id === undefined);
  const question: ReactNode = (
    <Confirm
      isOpen={asked.length > 0}
      title={text.storage.deleteAsk(asked.length, hasFolders)}
      action={text.storage.delete}
      typed={hasFolders && !isVersioned ? nameOf(asked, bucket) : undefined}
      isBusy={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate(asked)}
      onClose={() => setAsked([])}
    >
      {hasFolders && text.storage.deleteWithFolders}{' '}
      {isVersioned ? text.storage.deleteKept : text.storage.deleteForGood}
    </Confirm>
  );
  return {
    isBusy: remove.isPending,
    question,
    ask: (targets: readonly Target[]) => (isVersioned ? remove.mutate(targets) : setAsked(targets)),
    /** For the keyboard, where accidental presses are more likely. */
    askAlways: setAsked,
  };
}

/** The name to type before folders are deleted: the folder's, or the bucket's for several. */
function nameOf(targets: readonly Target[], bucket: string): string {
  const [first] = targets;
  if (targets.length > 1 || first === undefined) return bucket;
  return first.name.split('/').at(-2) ?? bucket;
}

/** A delete marker: removing it restores the object. */
interface Marker {
  readonly id: string;
  readonly version_id: string;
}

interface Deletion {
  readonly count: number;
  readonly markers: readonly Marker[];
  /** Why some were not deleted. */
  readonly failure: unknown;
}

async function deleteAll(bucket: string, targets: readonly Target[]): Promise<Deletion> {
  const markers: Marker[] = [];
  let count = 0;
  let failure: unknown;
  await eachOf(objectsOf(bucket, targets), async ({ id }) => {
    try {
      const { version_id, is_delete_marker } = await patiently(() => cloud.deleteObject(id));
      count++;
      if (is_delete_marker && version_id !== null) markers.push({ id, version_id });
    } catch (error) {
      failure ??= error;
    }
  });
  return { count, markers, failure };
}

async function undelete(markers: readonly Marker[]): Promise<void> {
  await eachOf(markers, ({ id, version_id }) => patiently(() => cloud.deleteObject(id, { version_id })));
}

/** Restores deleted objects. */
export function useRestore({ bucket, onDone }: { bucket: string; onDone?: () => void }) {
  return useMutation({
    mutationFn: async (objects: readonly StorageObject[]) => {
      for (const { id, version_id } of objects) {
        if (version_id !== undefined) await cloud.restoreObject(id, { version_id });
      }
    },
    onSuccess: (_, objects) => {
      const [first] = objects;
      const isOne = objects.length === 1 && first !== undefined;
      onDone?.();
      showDone(text.storage.backAgain(isOne ? first.name : text.storage.files(objects.length)));
    },
    meta: { invalidates: changedIn(bucket) },
  });
}
