/** A folder of a bucket: what is in it, found by name, uploaded to, deleted from. */

import { ArrowUpTrayIcon, FolderPlusIcon, MagnifyingGlassIcon } from '@heroicons/react/24/outline';
import { Button, FileButton, Group, Menu, TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { lazy, Suspense, useRef, useState } from 'react';
import { Empty } from '../../parts/empty.tsx';
import { Loaded, Page } from '../../parts/page.tsx';
import { text } from '../../texts/text.ts';
import { chosenFiles } from '../../uploads/dropped-files.ts';
import { useUpload } from '../../uploads/upload-place.ts';
import { BucketMenu } from './bucket-menu.tsx';
import { FileTable } from './file-table.tsx';
import { FolderTrail } from './folder-trail.tsx';
import { bucketQuery, filesQuery } from './queries.ts';

/** React does not know it. */
const FOLDERS = { webkitdirectory: '' };
const SEARCH_AFTER_MS = 250;

const ObjectDrawer = lazy(() =>
  import('./object-drawer.tsx').then((module) => ({ default: module.ObjectDrawer })),
);

export function FilesPage() {
  const { bucket: name } = useParams({ from: '/shell/storage/$bucket' });
  const { prefix = '', find = '', object } = useSearch({ from: '/shell/storage/$bucket' });
  const bucket = useQuery(bucketQuery(name));
  const files = useInfiniteQuery(filesQuery(name, prefix, find));
  const entries = files.data?.pages.flatMap(({ items }) => items);
  return (
    <Page
      title={prefix === '' ? name : (prefix.split('/').at(-2) ?? name)}
      trail={<FolderTrail bucket={name} prefix={prefix} />}
      actions={
        <>
          <UploadButtons />
          {bucket.data !== undefined && <BucketMenu bucket={bucket.data} />}
        </>
      }
    >
      <SearchField key={`${name}/${prefix}`} initial={find} />
      <Loaded query={{ data: entries, error: bucket.error ?? files.error, refetch: files.refetch }}>
        {(all) =>
          all.length === 0 ? (
            <NothingHere isSearch={find !== ''} />
          ) : (
            <FileTable
              key={`${name}/${prefix}/${find}`}
              bucket={name}
              isVersioned={bucket.data?.versioning === true}
              prefix={find === '' ? prefix : ''}
              entries={all}
              hasMore={files.hasNextPage}
              onMore={() => {
                if (!files.isFetchingNextPage) void files.fetchNextPage();
              }}
            />
          )
        }
      </Loaded>
      {object !== undefined && (
        <Suspense>
          <ObjectDrawer bucket={name} id={object} isVersioned={bucket.data?.versioning === true} />
        </Suspense>
      )}
    </Page>
  );
}

function SearchField({ initial }: { initial: string }) {
  const [words, setWords] = useState(initial);
  const navigate = useNavigate({ from: '/storage/$bucket' });
  const search = useDebouncedCallback((find: string) => {
    void navigate({
      replace: true,
      search: ({ prefix }) => ({
        ...(prefix === undefined ? {} : { prefix }),
        ...(find === '' ? {} : { find }),
      }),
    });
  }, SEARCH_AFTER_MS);
  return (
    <TextInput
      type="search"
      aria-label={text.storage.find}
      placeholder={text.storage.find}
      leftSection={<MagnifyingGlassIcon width={16} />}
      maw={360}
      value={words}
      onChange={({ currentTarget }) => {
        setWords(currentTarget.value);
        search(currentTarget.value);
      }}
    />
  );
}

function UploadButtons() {
  const upload = useUpload();
  const folderInput = useRef<HTMLInputElement>(null);
  return (
    <Group gap="xs">
      <FileButton multiple onChange={(files) => upload(chosenFiles(files))}>
        {(props) => (
          <Button {...props} leftSection={<ArrowUpTrayIcon width={18} />}>
            {text.storage.upload}
          </Button>
        )}
      </FileButton>
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
        </Menu.Dropdown>
      </Menu>
    </Group>
  );
}

function NothingHere({ isSearch }: { isSearch: boolean }) {
  return (
    <Empty
      icon={isSearch ? MagnifyingGlassIcon : ArrowUpTrayIcon}
      title={isSearch ? text.storage.nothingFound : text.storage.emptyFolder}
    >
      {isSearch ? text.storage.nothingFoundLead : text.storage.emptyFolderLead}
    </Empty>
  );
}
