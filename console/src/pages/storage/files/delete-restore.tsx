/**
 * Deleting objects and bringing them back. Where versions are kept, deleting happens at once and can be
 * undone; elsewhere the bytes would be gone, so it is asked first.
 */

import { useMutation } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { CloudError, type StorageObject } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { Confirm } from '../../../parts/forms/dialog.tsx';
import { showDone, showRefusal } from '../../../parts/notices.tsx';
import { text } from '../../../texts/text.ts';
import { bucketsQuery } from '../queries.ts';

/** An object, or without `id` a folder with all that is in it. */
interface Target {
  readonly id?: string | undefined;
  readonly name: string;
}

/** Calls under way at a time. */
const AT_ONCE = 6;

interface DeleteOptions {
  readonly bucket: string;
  readonly isVersioned: boolean;
  readonly onDone: () => void;
}

/** Queries that show the objects of a bucket, or their size. */
const changedIn = (bucket: string) => [{ queryKey: ['files', bucket] }, bucketsQuery];

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
      typed={hasFolders ? nameOf(asked, bucket) : undefined}
      isBusy={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate(asked)}
      onClose={() => setAsked([])}
    >
      {hasFolders && text.storage.deleteWithFolders} {text.storage.deleteForGood}
    </Confirm>
  );
  return {
    isBusy: remove.isPending,
    question,
    ask: (targets: readonly Target[]) => (isVersioned ? remove.mutate(targets) : setAsked(targets)),
  };
}

/** The name that is typed before folders are deleted: the folder's, or the bucket's for several. */
function nameOf(targets: readonly Target[], bucket: string): string {
  const [first] = targets;
  if (targets.length > 1 || first === undefined) return bucket;
  return first.name.split('/').at(-2) ?? bucket;
}

/** A delete marker: without it the object is back. */
interface Marker {
  readonly id: string;
  readonly version_id: string;
}

interface Deletion {
  readonly count: number;
  readonly markers: readonly Marker[];
  /** Why some are still there. */
  readonly failure: unknown;
}

async function deleteAll(bucket: string, targets: readonly Target[]): Promise<Deletion> {
  const markers: Marker[] = [];
  let count = 0;
  let failure: unknown;
  await eachOf(idsOf(bucket, targets), async (id) => {
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

async function* idsOf(bucket: string, targets: readonly Target[]): AsyncGenerator<string> {
  for (const { id, name } of targets) {
    if (id !== undefined) yield id;
    else for await (const object of cloud.listObjects(bucket, { prefix: name })) yield object.id;
  }
}

async function undelete(markers: readonly Marker[]): Promise<void> {
  await eachOf(markers, ({ id, version_id }) => patiently(() => cloud.deleteObject(id, { version_id })));
}

async function eachOf<T>(
  list: Iterable<T> | AsyncIterable<T>,
  work: (one: T) => Promise<unknown>,
): Promise<void> {
  const rest = (async function* () {
    yield* list;
  })();
  const worker = async () => {
    for await (const one of rest) await work(one);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

/** A large folder is more calls than the cloud takes in a few seconds: it says when to go on. */
async function patiently<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof CloudError) || error.status !== 429) throw error;
      await new Promise((resolve) => setTimeout(resolve, (error.retryAfterSeconds ?? 1) * 1000));
    }
  }
}

/** Brings deleted objects back, as they were last. */
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
