/** The bar above the list: actions for the chosen files. */
import {
  ArrowDownTrayIcon,
  ArrowUturnLeftIcon,
  CalculatorIcon,
  DocumentDuplicateIcon,
  FolderArrowDownIcon,
  LinkIcon,
  PencilIcon,
  ShareIcon,
  TrashIcon,
} from '@heroicons/react/24/outline';
import { Button, Group, Text } from '@mantine/core';
import type { BucketEntry } from '../../../../../sdk/index.ts';
import { sayBytes } from '../../../parts/say.ts';
import { filesText } from '../../../texts/files-text.ts';
import { text } from '../../../texts/text.ts';
import classes from '../storage.module.css';
import { useRestore } from './delete-restore.tsx';
import { useSelectionSize } from './folder-size.ts';
import type { FileAction, FileActions } from './use-file-actions.tsx';
import type { Chosen } from './use-selection.ts';

export const ACTION_ICONS = {
  rename: PencilIcon,
  move: FolderArrowDownIcon,
  copy: DocumentDuplicateIcon,
  size: CalculatorIcon,
  download: ArrowDownTrayIcon,
  link: LinkIcon,
  share: ShareIcon,
  delete: TrashIcon,
};

export const ACTION_WORDS: Readonly<Record<FileAction, string>> = {
  ...text.storage.relocate.action,
  size: filesText.calculateSize,
  download: text.storage.download,
  link: text.storage.copyLink,
  share: text.storage.share,
  delete: text.storage.delete,
};

/** Actions in this order. */
const FILE_ACTIONS: readonly FileAction[] = [
  'download',
  'rename',
  'move',
  'copy',
  'link',
  'share',
  'size',
  'delete',
];

/** Actions for one entry only. */
const ALONE: ReadonlySet<FileAction> = new Set(['rename', 'share']);

/** Actions for a selection. A folder has no signed link; it can be shared. */
export function actionsFor(entries: readonly BucketEntry[]): readonly FileAction[] {
  const hasFolder = entries.some(({ object }) => object === null);
  return FILE_ACTIONS.filter(
    (action) =>
      (entries.length === 1 || !ALONE.has(action)) &&
      (action !== 'link' || !hasFolder) &&
      (action !== 'size' || hasFolder),
  );
}

function wordsFor(action: FileAction, entries: readonly BucketEntry[]): string {
  if (action === 'download' && entries.length > 1) return text.storage.downloadZip;
  return action === 'link' && entries.length > 1 ? text.storage.copyLinks : ACTION_WORDS[action];
}

function SelectionSize({ bucket, entries }: { bucket: string; entries: readonly BucketEntry[] }) {
  const sum = useSelectionSize(bucket, entries);
  if (sum === undefined) return null;
  return (
    <Text size="sm" c="dimmed">
      {filesText.sum(sayBytes(sum.bytes), sum.files)}
    </Text>
  );
}

interface ChosenBarProps {
  readonly bucket: string;
  readonly areDeleted: boolean;
  readonly chosen: Chosen;
  readonly actions: FileActions;
  readonly onDone: () => void;
}

export function ChosenBar({ bucket, areDeleted, chosen, actions, onDone }: ChosenBarProps) {
  const restoring = useRestore({ bucket, onDone });
  if (chosen.size === 0) return null;
  const all = [...chosen.values()];
  return (
    <Group className={classes.chosen ?? ''} gap="xs">
      <Text size="sm" fw={550} role="status">
        {text.storage.chosen(chosen.size)}
      </Text>
      {!areDeleted && <SelectionSize bucket={bucket} entries={all} />}
      {areDeleted ? (
        <Button
          size="compact-sm"
          variant="default"
          leftSection={<ArrowUturnLeftIcon width={16} />}
          loading={restoring.isPending}
          onClick={() => restoring.mutate(all.flatMap(({ object }) => object ?? []))}
        >
          {text.storage.restore}
        </Button>
      ) : (
        actionsFor(all).map((action) => {
          const Icon = ACTION_ICONS[action];
          return (
            <Button
              key={action}
              size="compact-sm"
              variant="default"
              leftSection={<Icon width={16} />}
              loading={actions.busy === action}
              onClick={() => actions.act(action, all)}
            >
              {wordsFor(action, all)}
            </Button>
          );
        })
      )}
      <Button size="compact-sm" variant="subtle" onClick={onDone}>
        {text.storage.chooseNone}
      </Button>
    </Group>
  );
}
