/** The cells of one row: a folder or an object. */

import { ArrowUturnLeftIcon, DocumentIcon, FolderIcon, PhotoIcon } from '@heroicons/react/24/outline';
import { ActionIcon } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { memo } from 'react';
import type { BucketEntry, StorageObject } from '../../../../../sdk/index.ts';
import { sayBytes, sayName } from '../../../parts/say.ts';
import { When } from '../../../parts/tables/when.tsx';
import { text } from '../../../texts/text.ts';
import { inFolder } from '../queries.ts';
import classes from '../storage.module.css';
import { useRestore } from './delete-restore.tsx';

interface FileCellsProps {
  readonly entry: BucketEntry;
  readonly label: string;
  readonly bucket: string;
  readonly isChosen: boolean;
  readonly canChoose: boolean;
  readonly onChoose: (entry: BucketEntry, isChosen: boolean) => void;
}

/** Rows that stay while one scrolls are not made again. */
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
        onChange={({ currentTarget }) => onChoose(entry, currentTarget.checked)}
      />
    </span>
  );
}

function FolderCells(props: FileCellsProps) {
  const { entry, label } = props;
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
      <span role="cell" className={classes.size} />
      <span role="cell" className={classes.date} />
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
