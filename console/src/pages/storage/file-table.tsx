/** Rows of a folder. Only those near the window are in the page; the next are read as one scrolls. */

import { DocumentIcon, FolderIcon, PhotoIcon, TrashIcon } from '@heroicons/react/24/outline';
import { Button, Checkbox, Group, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useLayoutEffect, useRef, useState } from 'react';
import type { BucketEntry, StorageObject } from '../../../../sdk/index.ts';
import { sayBytes, sayCount } from '../../parts/size.ts';
import { When } from '../../parts/when.tsx';
import { text } from '../../texts/text.ts';
import classes from './file-table.module.css';
import { useDelete } from './use-delete.tsx';

const ROW_PX = 44;
/** Rows before the end at which more are read. */
const AHEAD = 60;

interface FileTableProps {
  readonly bucket: string;
  readonly isVersioned: boolean;
  /** Left out of the names. */
  readonly prefix: string;
  readonly entries: readonly BucketEntry[];
  readonly hasMore: boolean;
  readonly onMore: () => void;
}

export function FileTable({ bucket, isVersioned, prefix, entries, hasMore, onMore }: FileTableProps) {
  const [chosen, setChosen] = useState<ReadonlyMap<string, StorageObject>>(new Map());
  const frame = useRef<HTMLDivElement>(null);
  const [topPx, setTopPx] = useState(0);
  useLayoutEffect(() => setTopPx(frame.current?.offsetTop ?? 0), []);
  const rows = useWindowVirtualizer({
    count: entries.length,
    estimateSize: () => ROW_PX,
    overscan: 12,
    scrollMargin: topPx,
  });
  const shown = rows.getVirtualItems();
  const lastShown = shown.at(-1)?.index ?? 0;
  useEffect(() => {
    if (hasMore && lastShown >= entries.length - AHEAD) onMore();
  }, [hasMore, lastShown, entries.length, onMore]);
  const choose = (object: StorageObject, isChosen: boolean) => {
    const next = new Map(chosen);
    if (isChosen) next.set(object.id, object);
    else next.delete(object.id);
    setChosen(next);
  };
  return (
    <>
      <Chosen bucket={bucket} isVersioned={isVersioned} chosen={chosen} onDone={() => setChosen(new Map())} />
      <div role="table" aria-label={text.storage.objects} aria-rowcount={hasMore ? -1 : entries.length + 1}>
        <div role="row" className={`${classes.row} ${classes.head}`}>
          <span role="columnheader" aria-label={text.storage.choose} />
          <span role="columnheader">{text.storage.name}</span>
          <span role="columnheader" className={classes.size}>
            {text.storage.size}
          </span>
          <span role="columnheader" className={classes.date}>
            {text.storage.changed}
          </span>
        </div>
        <div
          ref={frame}
          role="rowgroup"
          style={{ height: rows.getTotalSize(), position: 'relative' }}
          data-count={entries.length}
        >
          {shown.map(({ index, start }) => {
            const entry = entries[index];
            if (entry === undefined) return null;
            return (
              <div
                key={entry.name}
                role="row"
                aria-rowindex={index + 2}
                className={`${classes.row} ${classes.placed}`}
                style={{ transform: `translateY(${start - topPx}px)` }}
              >
                <EntryCells
                  entry={entry}
                  label={entry.name.slice(prefix.length)}
                  bucket={bucket}
                  isChosen={entry.object !== null && chosen.has(entry.object.id)}
                  onChoose={choose}
                />
              </div>
            );
          })}
        </div>
      </div>
    </>
  );
}

interface EntryCellsProps {
  readonly entry: BucketEntry;
  readonly label: string;
  readonly bucket: string;
  readonly isChosen: boolean;
  readonly onChoose: (object: StorageObject, isChosen: boolean) => void;
}

function EntryCells({ entry: { name, object }, label, bucket, isChosen, onChoose }: EntryCellsProps) {
  if (object === null) {
    return (
      <>
        <span role="cell" />
        <span role="cell" className={classes.name}>
          <FolderIcon className={classes.folder} aria-hidden />
          <Link to="/storage/$bucket" params={{ bucket }} search={{ prefix: name }} className={classes.link}>
            {label.slice(0, -1)}
          </Link>
        </span>
        <span role="cell" className={classes.size} />
        <span role="cell" className={classes.date} />
      </>
    );
  }
  const Icon = object.mime_type.startsWith('image/') ? PhotoIcon : DocumentIcon;
  return (
    <>
      <span role="cell">
        <Checkbox
          size="xs"
          aria-label={text.storage.chooseOne(label)}
          checked={isChosen}
          onChange={({ currentTarget }) => onChoose(object, currentTarget.checked)}
        />
      </span>
      <span role="cell" className={classes.name}>
        <Icon className={classes.file} aria-hidden />
        <Link
          from="/storage/$bucket"
          to="."
          search={(search) => ({ ...search, object: object.id })}
          className={classes.link}
          title={name}
        >
          {label === '' ? name : label}
        </Link>
      </span>
      <span role="cell" className={classes.size}>
        {sayBytes(object.size)}
      </span>
      <span role="cell" className={classes.date}>
        <When at={object.created_at} />
      </span>
    </>
  );
}

interface ChosenProps {
  readonly bucket: string;
  readonly isVersioned: boolean;
  readonly chosen: ReadonlyMap<string, StorageObject>;
  readonly onDone: () => void;
}

function Chosen({ bucket, isVersioned, chosen, onDone }: ChosenProps) {
  const deleting = useDelete({ bucket, isVersioned, onDone });
  if (chosen.size === 0) return deleting.question;
  return (
    <Group className={classes.chosen ?? ''} role="status">
      <Text size="sm" fw={550}>
        {text.storage.chosen(sayCount(chosen.size))}
      </Text>
      <Button
        size="compact-sm"
        variant="default"
        leftSection={<TrashIcon width={16} />}
        loading={deleting.isBusy}
        onClick={() => deleting.ask([...chosen.values()])}
      >
        {text.storage.delete}
      </Button>
      <Button size="compact-sm" variant="subtle" onClick={onDone}>
        {text.storage.chooseNone}
      </Button>
      {deleting.question}
    </Group>
  );
}
