/** A folder of a bucket: browse, search, upload and delete. */

import {
  ArrowDownTrayIcon,
  ArrowUpTrayIcon,
  FolderPlusIcon,
  MagnifyingGlassIcon,
  TrashIcon,
} from '@heroicons/react/24/outline';
import { ActionIcon, Button, Group, Menu, Stack, Switch, TextInput } from '@mantine/core';
import { useDebouncedCallback, useMediaQuery } from '@mantine/hooks';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { useEffect, useMemo, useRef, useState } from 'react';
import type { BucketEntry } from '../../../../../sdk/index.ts';
import { useDownload } from '../../../parts/commands/download.ts';
import { Empty, Loaded, Page } from '../../../parts/page.tsx';
import { text } from '../../../texts/text.ts';
import { ChooseFiles, useUpload } from '../../../uploads/add-files.tsx';
import { chosenFiles } from '../../../uploads/dropped-files.ts';
import { BucketBadges, BucketMenu } from '../buckets/bucket-menu.tsx';
import { BucketTabs } from '../buckets/bucket-tabs.tsx';
import { bucketQuery, filesQuery } from '../queries.ts';
import classes from '../storage.module.css';
import { inReadingOrder } from './file-order.ts';
import { FileTable } from './file-table.tsx';
import { NewFolder } from './new-folder.tsx';
import { ObjectPanel } from './object-panel.tsx';
import { PathBar } from './path-bar.tsx';
import { UnfinishedNote } from './unfinished-note.tsx';

/** An attribute that React does not support. */
const FOLDERS = { webkitdirectory: '' };
const SEARCH_AFTER_MS = 250;
/** From this width on, a file is shown beside the list. */
const WIDE = '(min-width: 1200px)';
/** A folder of at most this many pages, 1,200 entries, is shown in natural order. */
const ORDERED_PAGES = 2;
const NOTHING = { search: MagnifyingGlassIcon, deleted: TrashIcon, folder: ArrowUpTrayIcon };

export function FilesPage() {
  const { bucket: name } = useParams({ from: '/shell/storage/$bucket' });
  const search = useSearch({ from: '/shell/storage/$bucket' });
  const { prefix = '', find = '', deleted = false, object, tab } = search;
  const bucket = useQuery(bucketQuery(name));
  const files = useInfiniteQuery({ ...filesQuery(name, search), enabled: tab === undefined });
  const { data: read, hasNextPage, isFetching, fetchNextPage } = files;
  const { sort, order = 'asc' } = search;
  const isByName = sort === undefined && find === '' && !deleted;
  const isWhole = isByName && !hasNextPage && (read?.pages.length ?? 0) <= ORDERED_PAGES;
  // A folder of a thousand entries is read completely, so that it can be sorted.
  const isShort = isByName && hasNextPage && (read?.pages.length ?? 0) < ORDERED_PAGES;
  useEffect(() => {
    if (isShort && !isFetching) void fetchNextPage();
  }, [isShort, isFetching, fetchNextPage]);
  const entries = useMemo(() => {
    const all = read && joined(read.pages);
    return all && isWhole ? inReadingOrder(all, order) : all;
  }, [read, isWhole, order]);
  const isVersioned = bucket.data?.versioning === true;
  const isWide = useMediaQuery(WIDE, undefined, { getInitialValueInEffect: false });
  const opened = object === undefined ? undefined : { bucket: name, id: object, isVersioned };
  // Without a list, details cannot be shown beside it.
  const isBeside = opened !== undefined && isWide && tab === undefined && (entries?.length ?? 0) > 0;
  const download = useDownload('downloadFolder', [name], prefix === '' ? {} : { prefix });
  return (
    <Page
      title={prefix === '' ? name : prefix.split('/').at(-2) || '/'}
      trail={<PathBar key={`${name}/${prefix}`} bucket={name} prefix={prefix} />}
      actions={
        <>
          <UploadButtons prefix={prefix} />
          <ActionIcon
            loading={download.isPending}
            onClick={() => download.mutate()}
            variant="default"
            size={36}
            aria-label={text.storage.downloadFolder}
            title={text.storage.downloadFolder}
          >
            <ArrowDownTrayIcon width={18} />
          </ActionIcon>
          {bucket.data !== undefined && <BucketMenu bucket={bucket.data} />}
        </>
      }
    >
      <BucketTabs bucket={name} tab={tab}>
        <Stack>
          <UnfinishedNote bucket={name} />
          <Group justify="space-between">
            <SearchField key={`${name}/${prefix}`} initial={find} />
            <Group gap="sm">
              {bucket.data !== undefined && <BucketBadges bucket={bucket.data} />}
              <DeletedSwitch isOn={deleted} />
            </Group>
          </Group>
          <Loaded query={{ data: entries, error: bucket.error ?? files.error, refetch: files.refetch }}>
            {(all) =>
              all.length === 0 ? (
                <NothingHere kind={find !== '' ? 'search' : deleted ? 'deleted' : 'folder'} />
              ) : (
                <div className={isBeside ? classes.withPanel : undefined}>
                  <div className={classes.list}>
                    <FileTable
                      key={JSON.stringify([name, { ...search, object: undefined }])}
                      bucket={name}
                      isVersioned={isVersioned}
                      search={search}
                      entries={all}
                      isByBytes={isByName && !isWhole && !isShort}
                      hasMore={files.hasNextPage}
                      onMore={() => {
                        if (!files.isFetchingNextPage) void files.fetchNextPage();
                      }}
                    />
                  </div>
                  {isBeside && <ObjectPanel {...opened} isBeside />}
                </div>
              )
            }
          </Loaded>
        </Stack>
      </BucketTabs>
      {opened !== undefined && !isBeside && <ObjectPanel {...opened} isBeside={false} />}
    </Page>
  );
}

/** Seven times faster than flatMap, which matters for a million entries. */
function joined(pages: readonly { readonly items: readonly BucketEntry[] }[]): BucketEntry[] {
  return ([] as BucketEntry[]).concat(...pages.map(({ items }) => items));
}

function SearchField({ initial }: { initial: string }) {
  const [words, setWords] = useState(initial);
  const navigate = useNavigate({ from: '/storage/$bucket' });
  const search = useDebouncedCallback((find: string) => {
    void navigate({
      replace: true,
      search: ({ find: _, object: __, ...view }) => (find === '' ? view : { ...view, find }),
    });
  }, SEARCH_AFTER_MS);
  return (
    <TextInput
      type="search"
      aria-label={text.storage.find}
      placeholder={text.storage.find}
      leftSection={<MagnifyingGlassIcon width={16} />}
      w="100%"
      maw={360}
      value={words}
      onChange={({ currentTarget }) => {
        setWords(currentTarget.value);
        search(currentTarget.value);
      }}
    />
  );
}

/** Deleted files are sorted by name only. */
function DeletedSwitch({ isOn }: { isOn: boolean }) {
  const navigate = useNavigate({ from: '/storage/$bucket' });
  return (
    <Switch
      label={text.storage.showDeleted}
      checked={isOn}
      onChange={({ currentTarget: { checked } }) =>
        void navigate({
          search: ({ prefix, find }) => ({
            ...(prefix === undefined ? {} : { prefix }),
            ...(find === undefined ? {} : { find }),
            ...(checked ? { deleted: true } : {}),
          }),
        })
      }
    />
  );
}

function UploadButtons({ prefix }: { prefix: string }) {
  const upload = useUpload();
  const [isNew, setNew] = useState(false);
  const folderInput = useRef<HTMLInputElement>(null);
  return (
    <Group gap="xs">
      <ChooseFiles>
        {(props) => (
          <Button {...props} leftSection={<ArrowUpTrayIcon width={18} />}>
            {text.storage.upload}
          </Button>
        )}
      </ChooseFiles>
      <input
        ref={folderInput}
        type="file"
        hidden
        {...FOLDERS}
        onChange={({ currentTarget }) => {
          void upload(chosenFiles(currentTarget.files ?? []));
          currentTarget.value = '';
        }}
      />
      <Menu position="bottom-end">
        <Menu.Target>
          <Button variant="default" aria-label={text.storage.moreUploads} px="xs">
            <FolderPlusIcon width={18} />
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => folderInput.current?.click()}>{text.storage.uploadFolder}</Menu.Item>
          <Menu.Item onClick={() => setNew(true)}>{text.storage.newFolder}</Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <NewFolder isOpen={isNew} prefix={prefix} onClose={() => setNew(false)} />
    </Group>
  );
}

function NothingHere({ kind }: { kind: 'search' | 'deleted' | 'folder' }) {
  const { title, lead } = text.storage.nothing[kind];
  return (
    <Empty icon={NOTHING[kind]} title={title}>
      {lead}
    </Empty>
  );
}
