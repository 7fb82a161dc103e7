/** Actions for files and folders, and their windows. */
import { useMutation } from '@tanstack/react-query';
import { type ReactNode, useCallback, useRef, useState } from 'react';
import type { BucketEntry } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { copyText } from '../../../parts/commands/copy.tsx';
import { type DownloadTarget, useDownloads } from '../../../parts/commands/download.ts';
import { lazyPart } from '../../../parts/lazy-part.tsx';
import { showDone } from '../../../parts/notices.tsx';
import { text } from '../../../texts/text.ts';
import { useDelete } from './delete-restore.tsx';
import { useCountFolders } from './folder-size.ts';
import { eachOf, patiently, type Target } from './many.ts';
import type { Wish } from './relocate-dialog.tsx';
import type { Relocation } from './relocating.ts';

const RelocateDialog = lazyPart(() => import('./relocate-dialog.tsx').then((made) => made.RelocateDialog));

const ShareDialog = lazyPart(() => import('../sharing/share-panel.tsx').then((made) => made.ShareDialog));

export type FileAction = Relocation | 'size' | 'download' | 'link' | 'share' | 'delete';

export interface FileActions {
  /** `isByKey`: asks before deleting, even if files can be restored. */
  readonly act: (action: FileAction, entries: readonly BucketEntry[], isByKey?: boolean) => void;
  /** The running action. */
  readonly busy: FileAction | undefined;
  readonly windows: ReactNode;
}

interface FileActionsOptions {
  readonly bucket: string;
  readonly isVersioned: boolean;
  /** The displayed folder. */
  readonly prefix: string;
  readonly onDone: () => void;
}

export function useFileActions({ bucket, isVersioned, prefix, onDone }: FileActionsOptions): FileActions {
  const [wish, setWish] = useState<Wish | null>(null);
  const [shared, setShared] = useState<string | null>(null);
  const deleting = useDelete({ bucket, isVersioned, onDone });
  const download = useDownloads();
  const copying = useMutation({
    mutationFn: copyLinks,
    onSuccess: (links) => showDone(text.storage.linksCopied(links)),
  });
  const counting = useMutation({ mutationFn: useCountFolders(bucket) });
  const begin = (action: FileAction, entries: readonly BucketEntry[], isByKey: boolean) => {
    const targets: readonly Target[] = entries.map(({ name, object }) => ({ name, id: object?.id }));
    const [first] = targets;
    if (first === undefined) return;
    if (action === 'delete') return isByKey ? deleting.askAlways(targets) : deleting.ask(targets);
    if (action === 'size') return counting.mutate(entries);
    if (action === 'link') return copying.mutate(targets);
    if (action === 'share') return setShared(first.name);
    if (action !== 'download') return setWish({ kind: action, targets });
    download.mutate(() => downloadOf(bucket, targets));
  };
  // Stable function identity, so that rows are not rendered again.
  const latest = useRef(begin);
  latest.current = begin;
  const act = useCallback<FileActions['act']>(
    (action, entries, isByKey = false) => latest.current(action, entries, isByKey),
    [],
  );
  const windows = (
    <>
      {deleting.question}
      {shared !== null && <ShareDialog bucket={bucket} name={shared} onClose={() => setShared(null)} />}
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
  const busy = (['delete', 'download', 'link', 'size'] as const).find(
    (_, at) => [deleting.isBusy, download.isPending, copying.isPending, counting.isPending][at],
  );
  return { act, busy, windows };
}

/** A file unchanged, a folder or several entries as a zip. */
async function downloadOf(bucket: string, targets: readonly Target[]): Promise<DownloadTarget> {
  const [first] = targets;
  if (targets.length === 1 && first !== undefined) {
    const { id, name } = first;
    return id === undefined ? ['downloadFolder', [bucket], { prefix: name }] : ['downloadObject', [id]];
  }
  const { selection_id } = await cloud.selectFiles(bucket, { names: targets.map(({ name }) => name) });
  return ['downloadFolder', [bucket], { selection: selection_id }];
}

/** One link per line, in the order of the list; each is valid for the cloud's default time. */
async function copyLinks(targets: readonly Target[]): Promise<number> {
  const links = new Map<string, string>();
  await eachOf(targets, async ({ id }) => {
    if (id !== undefined) links.set(id, (await patiently(() => cloud.getCdnUrl(id))).cdn_url);
  });
  const lines = targets.flatMap(({ id }) => links.get(id ?? '') ?? []);
  await copyText(lines.join('\n'));
  return lines.length;
}
