/**
 * Deleting objects. Where versions are kept it happens at once and can be undone; elsewhere the bytes would
 * be gone, so it is asked first.
 */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import type { StorageObject } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { showDone, showRefusal } from '../../parts/notices.tsx';
import { text } from '../../texts/text.ts';

type Target = Pick<StorageObject, 'id' | 'name'>;

/** Calls under way at a time. */
const AT_ONCE = 6;

interface DeleteOptions {
  readonly bucket: string;
  readonly isVersioned: boolean;
  readonly onDone: () => void;
}

export function useDelete({ bucket, isVersioned, onDone }: DeleteOptions) {
  const [asked, setAsked] = useState<readonly Target[]>([]);
  const queryClient = useQueryClient();
  const refresh = async () => {
    await queryClient.invalidateQueries({ queryKey: ['files', bucket] });
    await queryClient.invalidateQueries({ queryKey: ['buckets'] });
  };
  const remove = useMutation({
    mutationFn: (targets: readonly Target[]) => deleteAll(targets),
    onSuccess: async ({ markers, failure }, targets) => {
      setAsked([]);
      onDone();
      const count = targets.length;
      const [first] = targets;
      const said = count === 1 && first !== undefined ? first.name : text.storage.files(count);
      const undo = () => void undelete(markers).then(refresh, showRefusal);
      if (failure === undefined) showDone(text.storage.deleted(said), markers.length > 0 ? undo : undefined);
      else showRefusal(failure);
      await refresh();
    },
  });
  const question: ReactNode = (
    <Confirm
      isOpen={asked.length > 0}
      title={text.storage.deleteAsk(asked.length)}
      action={text.storage.delete}
      isBusy={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate(asked)}
      onClose={() => setAsked([])}
    >
      {text.storage.deleteForGood}
    </Confirm>
  );
  return {
    isBusy: remove.isPending,
    question,
    ask: (targets: readonly Target[]) => (isVersioned ? remove.mutate(targets) : setAsked(targets)),
  };
}

/** A delete marker: without it the object is back. */
interface Marker {
  readonly id: string;
  readonly version_id: string;
}

async function deleteAll(targets: readonly Target[]): Promise<{ markers: Marker[]; failure: unknown }> {
  const markers: Marker[] = [];
  let failure: unknown;
  await eachOf(targets, async ({ id }) => {
    try {
      const { version_id, is_delete_marker } = await cloud.objects.delete(id);
      if (is_delete_marker && version_id !== null) markers.push({ id, version_id });
    } catch (error) {
      failure ??= error;
    }
  });
  return { markers, failure };
}

async function undelete(markers: readonly Marker[]): Promise<void> {
  await eachOf(markers, ({ id, version_id }) => cloud.objects.delete(id, { version_id }));
}

async function eachOf<T>(list: readonly T[], work: (one: T) => Promise<unknown>): Promise<void> {
  const rest = [...list];
  const worker = async () => {
    for (let one = rest.shift(); one !== undefined; one = rest.shift()) await work(one);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}
