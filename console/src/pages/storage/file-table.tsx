/** Rows of a folder. Only those near the window are in the page; the next are read as one scrolls. */

import { ArrowUturnLeftIcon, TrashIcon } from '@heroicons/react/24/outline';
import { Button, Group, Text } from '@mantine/core';
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react';
import type { BucketEntry, StorageObject } from '../../../../sdk/index.ts';
import { sayCount } from '../../parts/size.ts';
import { text } from '../../texts/text.ts';
import { FileCells } from './file-cells.tsx';
import { FileHead } from './file-head.tsx';
import classes from './file-table.module.css';
import type { FilesSearch } from './files-search.ts';
import { useDelete } from './use-delete.tsx';
import { useRestore } from './use-restore.ts';

const ROW_PX = 44;
/** Rows before the end at which more are read. */
const AHEAD = 60;

interface FileTableProps {
  readonly bucket: string;
  readonly isVersioned: boolean;
  readonly search: FilesSearch;
  readonly entries: readonly BucketEntry[];
  readonly hasMore: boolean;
  readonly onMore: () => void;
}

export function FileTable({ bucket, isVersioned, search, entries, hasMore, onMore }: FileTableProps) {
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
  const choose = useCallback((object: StorageObject, isChosen: boolean) => {
    setChosen((before) => {
      const next = new Map(before);
      if (isChosen) next.set(object.id, object);
      else next.delete(object.id);
      return next;
    });
  }, []);
  return (
    <>
      <Chosen
        bucket={bucket}
        isVersioned={isVersioned}
        areDeleted={search.deleted === true}
        chosen={chosen}
        onDone={() => setChosen(new Map())}
      />
      <div role="table" aria-label={text.storage.objects} aria-rowcount={hasMore ? -1 : entries.length + 1}>
        <FileHead search={search} />
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
                <FileCells
                  entry={entry}
                  label={entry.name.slice(search.find === undefined ? (search.prefix?.length ?? 0) : 0)}
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

interface ChosenProps {
  readonly bucket: string;
  readonly isVersioned: boolean;
  readonly areDeleted: boolean;
  readonly chosen: ReadonlyMap<string, StorageObject>;
  readonly onDone: () => void;
}

function Chosen({ bucket, isVersioned, areDeleted, chosen, onDone }: ChosenProps) {
  const deleting = useDelete({ bucket, isVersioned, onDone });
  const restoring = useRestore({ bucket, onDone });
  if (chosen.size === 0) return deleting.question;
  const all = [...chosen.values()];
  return (
    <Group className={classes.chosen ?? ''} role="status">
      <Text size="sm" fw={550}>
        {text.storage.chosen(sayCount(chosen.size))}
      </Text>
      <Button
        size="compact-sm"
        variant="default"
        leftSection={areDeleted ? <ArrowUturnLeftIcon width={16} /> : <TrashIcon width={16} />}
        loading={areDeleted ? restoring.isPending : deleting.isBusy}
        onClick={() => (areDeleted ? restoring.mutate(all) : deleting.ask(all))}
      >
        {areDeleted ? text.storage.restore : text.storage.delete}
      </Button>
      <Button size="compact-sm" variant="subtle" onClick={onDone}>
        {text.storage.chooseNone}
      </Button>
      {deleting.question}
    </Group>
  );
}
