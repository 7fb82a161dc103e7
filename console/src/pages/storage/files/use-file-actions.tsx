/** Actions for files and folders, and the windows that they need. */
import { type ReactNode, useCallback, useRef, useState } from 'react';
import type { BucketEntry } from '../../../../../sdk/index.ts';
import { useDownloads } from '../../../parts/commands/download.ts';
import { lazyPart } from '../../../parts/lazy-part.tsx';
import { useDelete } from './delete-restore.tsx';
import type { Target } from './many.ts';
import type { Wish } from './relocate-dialog.tsx';
import type { Relocation } from './relocating.ts';

const RelocateDialog = lazyPart(() => import('./relocate-dialog.tsx').then((made) => made.RelocateDialog));

export type FileAction = Relocation | 'download' | 'delete';

export interface FileActions {
  /** `isByKey`: it is asked before files are deleted, also where they can be restored. */
  readonly act: (action: FileAction, entries: readonly BucketEntry[], isByKey?: boolean) => void;
  /** The action under way. */
  readonly busy: FileAction | undefined;
  readonly windows: ReactNode;
}

interface FileActionsOptions {
  readonly bucket: string;
  readonly isVersioned: boolean;
  /** The folder that is shown. */
  readonly prefix: string;
  readonly onDone: () => void;
}

export function useFileActions({ bucket, isVersioned, prefix, onDone }: FileActionsOptions): FileActions {
  const [wish, setWish] = useState<Wish | null>(null);
  const deleting = useDelete({ bucket, isVersioned, onDone });
  const download = useDownloads();
  const begin = (action: FileAction, entries: readonly BucketEntry[], isByKey: boolean) => {
    const targets: readonly Target[] = entries.map(({ name, object }) => ({ name, id: object?.id }));
    const [first] = targets;
    if (first === undefined) return;
    if (action === 'delete') return isByKey ? deleting.askAlways(targets) : deleting.ask(targets);
    if (action !== 'download') return setWish({ kind: action, targets });
    if (first.id === undefined) download.mutate(['downloadFolder', [bucket], { prefix: first.name }]);
    else download.mutate(['downloadObject', [first.id]]);
  };
  // Rows that stay are not made again: they get the same function each time.
  const latest = useRef(begin);
  latest.current = begin;
  const act = useCallback<FileActions['act']>(
    (action, entries, isByKey = false) => latest.current(action, entries, isByKey),
    [],
  );
  const windows = (
    <>
      {deleting.question}
      {wish !== null && (
        <RelocateDialog
          {...wish}
          bucket={bucket}
          prefix={prefix}
          onDone={onDone}
          onClose={() => setWish(null)}
        />
      )}
    </>
  );
  const busy = deleting.isBusy ? 'delete' : download.isPending ? 'download' : undefined;
  return { act, busy, windows };
}
