import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { StorageObject } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { showDone } from '../../parts/notices.tsx';
import { text } from '../../texts/text.ts';

/** Brings deleted objects back, as they were last. */
export function useRestore({ bucket, onDone }: { bucket: string; onDone?: () => void }) {
  const queryClient = useQueryClient();
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
    onSettled: async () => {
      await queryClient.invalidateQueries({ queryKey: ['files', bucket] });
      await queryClient.invalidateQueries({ queryKey: ['buckets'] });
    },
  });
}
