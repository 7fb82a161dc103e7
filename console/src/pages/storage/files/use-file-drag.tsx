/** Dragging files and folders onto a folder, or onto the path above the list, moves them there. */
import { type DragEvent, type ReactNode, useState } from 'react';
import { lazyPart } from '../../../parts/lazy-part.tsx';
import classes from '../storage.module.css';
import type { Target } from './many.ts';
import type { Wish } from './relocate-dialog.tsx';
import { parentOf } from './relocating.ts';

const RelocateDialog = lazyPart(() => import('./relocate-dialog.tsx').then((made) => made.RelocateDialog));

interface Dragged {
  readonly bucket: string;
  readonly targets: readonly Target[];
  /** Called after they were moved. */
  readonly onDone: () => void;
}

/** Dragged files of this page; browsers reveal a drag's data only where it is dropped. */
let held: Dragged | undefined;

/** Starts a drag, with the names for other programs. */
export function beginDrag({ dataTransfer }: DragEvent, dragged: Dragged): void {
  held = dragged;
  dataTransfer.effectAllowed = 'copyMove';
  dataTransfer.clearData();
  dataTransfer.setData('text/plain', dragged.targets.map(({ name }) => name).join('\n'));
}

export function endDrag(): void {
  held = undefined;
}

interface FolderDrop {
  /** Makes an element a drop target for this folder. */
  readonly into: (folder: string) => Pick<DropProps, 'onDragOver' | 'onDragLeave' | 'onDrop'>;
  readonly windows: ReactNode;
}

type DropProps = Required<Pick<React.HTMLAttributes<HTMLElement>, 'onDragOver' | 'onDragLeave' | 'onDrop'>>;

/** Folders of `bucket` as drop targets; with Ctrl or Alt, files are copied. */
export function useFolderDrop(bucket: string): FolderDrop {
  const [wish, setWish] = useState<(Wish & { readonly onDone: () => void }) | null>(null);
  const into: FolderDrop['into'] = (folder) => ({
    onDragOver: (event) => {
      if (held === undefined || !takes(held, bucket, folder)) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = isCopy(event) ? 'copy' : 'move';
      event.currentTarget.classList.add(classes.under ?? '');
    },
    onDragLeave: ({ currentTarget }) => currentTarget.classList.remove(classes.under ?? ''),
    onDrop: (event) => {
      event.currentTarget.classList.remove(classes.under ?? '');
      if (held === undefined || !takes(held, bucket, folder)) return;
      event.preventDefault();
      const { targets, onDone } = held;
      setWish({ kind: isCopy(event) ? 'copy' : 'move', targets, to: folder, onDone });
      held = undefined;
    },
  });
  const windows = wish !== null && (
    <RelocateDialog {...wish} bucket={bucket} prefix={wish.to ?? ''} onClose={() => setWish(null)} />
  );
  return { into, windows };
}

const isCopy = ({ ctrlKey, altKey }: DragEvent) => ctrlKey || altKey;

/** A folder cannot be moved into itself or to its own place. */
function takes({ bucket: from, targets }: Dragged, bucket: string, folder: string): boolean {
  return (
    from === bucket &&
    targets.every(
      ({ id, name }) => parentOf(name) !== folder && (id !== undefined || !folder.startsWith(name)),
    )
  );
}
