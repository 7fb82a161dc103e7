/** The cells of one row: a folder or an object. */

import {
  ArrowUturnLeftIcon,
  DocumentIcon,
  EllipsisHorizontalIcon,
  FolderIcon,
  PhotoIcon,
} from '@heroicons/react/24/outline';
import { ActionIcon, Menu } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { type ComponentProps, memo } from 'react';
import type { BucketEntry, StorageObject } from '../../../../../sdk/index.ts';
import { sayBytes, sayName } from '../../../parts/say.ts';
import { RowMenu } from '../../../parts/tables/row-menu.tsx';
import { When } from '../../../parts/tables/when.tsx';
import { filesText } from '../../../texts/files-text.ts';
import { text } from '../../../texts/text.ts';
import { inFolder } from '../queries.ts';
import classes from '../storage.module.css';
import { ACTION_ICONS, ACTION_WORDS, actionsFor } from './chosen-bar.tsx';
import { useRestore } from './delete-restore.tsx';
import { useFolderSize } from './folder-size.ts';
import type { FileActions } from './use-file-actions.tsx';
import type { Selection } from './use-selection.ts';

interface FileCellsProps {
  readonly entry: BucketEntry;
  readonly label: string;
  readonly bucket: string;
  readonly isChosen: boolean;
  readonly canChoose: boolean;
  readonly onChoose: Selection['choose'];
  /** Absent: no menu. */
  readonly onAct: FileActions['act'] | undefined;
}

/** Memoized, because rows stay while scrolling. */
export const FileCells = memo(function FileCells(props: FileCellsProps) {
  const { entry, label, bucket } = props;
  const { name, object, deleted_at } = entry;
  if (object === null) return <FolderCells {...props} />;
  const Icon = object.mime_type.startsWith('image/') ? PhotoIcon : DocumentIcon;
  return (
    <>
      <ChooseCell {...props} />
      <span role="cell" className={classes.name}>
        <Icon className={classes.file} aria-hidden />
        <Link
          from="/storage/$bucket"
          to="."
          search={(search) => ({ ...search, object: object.id })}
          resetScroll={false}
          className={classes.link}
          title={name}
        >
          {sayName(label === '' ? name : label)}
        </Link>
        {deleted_at !== undefined && <Restore bucket={bucket} object={object} />}
      </span>
      <span role="cell" className={classes.size}>
        {sayBytes(object.size)}
      </span>
      <span role="cell" className={classes.date}>
        <When at={deleted_at ?? object.created_at} />
      </span>
      <MenuCell {...props} />
    </>
  );
});

function ChooseCell({ entry, label, isChosen, canChoose, onChoose }: FileCellsProps) {
  if (!canChoose) return <span role="cell" />;
  return (
    <span role="cell">
      <input
        type="checkbox"
        className={classes.box}
        aria-label={text.storage.chooseOne(label)}
        checked={isChosen}
        onChange={({ currentTarget, nativeEvent }) =>
          onChoose(entry, currentTarget.checked, nativeEvent instanceof MouseEvent && nativeEvent.shiftKey)
        }
      />
    </span>
  );
}

function MenuCell({ entry, label, onAct }: FileCellsProps) {
  return (
    <span role="cell" className={classes.menu}>
      {onAct !== undefined && (
        <RowMenu label={text.storage.actionsOf(sayName(label === '' ? entry.name : label))} button={dots}>
          {(menu, target) => (
            <Menu position="bottom-end" {...menu}>
              <Menu.Target>{target}</Menu.Target>
              <Menu.Dropdown>
                {actionsFor([entry]).map((action) => {
                  const Icon = ACTION_ICONS[action];
                  return (
                    <Menu.Item
                      key={action}
                      {...(action === 'delete' && { color: 'var(--wrong)' })}
                      leftSection={<Icon width={18} />}
                      onClick={() => onAct(action, [entry])}
                    >
                      {ACTION_WORDS[action]}
                    </Menu.Item>
                  );
                })}
              </Menu.Dropdown>
            </Menu>
          )}
        </RowMenu>
      )}
    </span>
  );
}

/** Cheaper than Mantine's icon, whose cost is noticeable while scrolling. */
const dots = (props: ComponentProps<'button'>) => (
  <button type="button" {...props} className={classes.more}>
    <EllipsisHorizontalIcon width={20} aria-hidden />
  </button>
);

function FolderSize({ bucket, prefix }: { bucket: string; prefix: string }) {
  const { sum, isCounting } = useFolderSize(bucket, prefix);
  if (sum === undefined) return isCounting ? filesText.counting : null;
  const size = sayBytes(sum.bytes);
  return (
    <span title={filesText.inFolder(sum.files, sum.isWhole)}>
      {sum.isWhole ? size : filesText.atLeast(size)}
    </span>
  );
}

function FolderCells(props: FileCellsProps) {
  const { entry, label, bucket } = props;
  return (
    <>
      <ChooseCell {...props} />
      <span role="cell" className={classes.name}>
        <FolderIcon className={classes.folder} aria-hidden />
        <Link
          from="/storage/$bucket"
          to="."
          search={(search) => inFolder(search, entry.name)}
          className={classes.link}
        >
          {sayName(label.slice(0, -1)) || '/'}
        </Link>
      </span>
      <span role="cell" className={classes.size}>
        <FolderSize bucket={bucket} prefix={entry.name} />
      </span>
      <span role="cell" className={classes.date} />
      <MenuCell {...props} />
    </>
  );
}

function Restore({ bucket, object }: { bucket: string; object: StorageObject }) {
  const restoring = useRestore({ bucket });
  return (
    <ActionIcon
      variant="subtle"
      size="sm"
      className={classes.back ?? ''}
      aria-label={text.storage.restoreOne(object.name)}
      title={text.storage.restore}
      loading={restoring.isPending}
      onClick={() => restoring.mutate([object])}
    >
      <ArrowUturnLeftIcon width={16} />
    </ActionIcon>
  );
}
