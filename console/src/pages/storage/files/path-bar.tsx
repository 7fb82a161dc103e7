/** Storage › bucket › folder › folder, each a link; or the path as text, to type or paste. */

import { PencilSquareIcon } from '@heroicons/react/24/outline';
import { ActionIcon, Breadcrumbs, Group, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { cloud } from '../../../cloud.ts';
import { refusalOf } from '../../../parts/forms/refusal.ts';
import { AnchorLink } from '../../../parts/tables/links.tsx';
import { text } from '../../../texts/text.ts';
import { type FilesSearch, type FolderSearch, inFolder } from '../queries.ts';
import { useFolderDrop } from './use-file-drag.tsx';

interface Folder {
  readonly bucket: string;
  readonly prefix: string;
}

export function PathBar(folder: Folder) {
  const [isTyped, setTyped] = useState(false);
  if (isTyped) return <PathField folder={folder} onEnd={() => setTyped(false)} />;
  return (
    <Group gap={6} mb={4} wrap="nowrap">
      <Trail {...folder} />
      <ActionIcon
        variant="subtle"
        color="gray"
        size={24}
        aria-label={text.storage.editPath}
        title={text.storage.editPath}
        onClick={() => setTyped(true)}
      >
        <PencilSquareIcon width={16} />
      </ActionIcon>
    </Group>
  );
}

function Trail({ bucket, prefix }: Folder) {
  const folders = prefix.split('/').slice(0, -1);
  const { into, windows } = useFolderDrop(bucket);
  return (
    <nav aria-label={text.storage.trail}>
      {windows}
      <Breadcrumbs separator="›" style={{ flexWrap: 'wrap' }}>
        <AnchorLink to="/storage" size="sm">
          {text.storage.title}
        </AnchorLink>
        {folders.length > 0 && (
          <AnchorLink
            to="/storage/$bucket"
            params={{ bucket }}
            search={(search: FolderSearch) => inFolder(search, '')}
            size="sm"
            {...into('')}
          >
            {bucket}
          </AnchorLink>
        )}
        {folders.slice(0, -1).map((folder, at) => {
          const path = `${folders.slice(0, at + 1).join('/')}/`;
          return (
            <AnchorLink
              key={path}
              to="/storage/$bucket"
              params={{ bucket }}
              search={(search: FolderSearch) => inFolder(search, path)}
              size="sm"
              {...into(path)}
            >
              {folder || '/'}
            </AnchorLink>
          );
        })}
      </Breadcrumbs>
    </nav>
  );
}

function PathField({ folder, onEnd }: { folder: Folder; onEnd: () => void }) {
  const [path, setPath] = useState(`${folder.bucket}/${folder.prefix}`);
  const navigate = useNavigate();
  const go = useMutation({
    mutationFn: findPlace,
    meta: { shown: true },
    onSuccess: async ({ bucket, search }) => {
      onEnd();
      await navigate({ to: '/storage/$bucket', params: { bucket }, search });
    },
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        go.mutate(path);
      }}
    >
      <TextInput
        aria-label={text.storage.path}
        description={text.storage.pathHint}
        error={go.error === null ? undefined : refusalOf(go.error).title}
        data-autofocus
        ref={(field) => field?.focus()}
        value={path}
        spellCheck={false}
        autoCapitalize="none"
        maw={560}
        mb="xs"
        onChange={({ currentTarget }) => setPath(currentTarget.value)}
        onKeyDown={({ key }) => {
          if (key === 'Escape') onEnd();
        }}
      />
    </form>
  );
}

/** Finds a pasted `bucket/folder/file`, with or without a leading slash. Throws CloudError. */
async function findPlace(path: string): Promise<{ bucket: string; search: FilesSearch }> {
  const [bucket = '', ...rest] = path
    .trim()
    .replace(/^(s3:\/)?\/+/, '')
    .split('/');
  const name = rest.join('/');
  if (name === '' || name.endsWith('/')) {
    await cloud.getBucket(bucket);
    return { bucket, search: name === '' ? {} : { prefix: name } };
  }
  const { items } = await cloud.browseBucket(bucket, { prefix: name }).page({ limit: 1 });
  const object = items[0]?.name === name ? items[0].object : null;
  if (object === null) return { bucket, search: { prefix: `${name}/` } };
  const folder = inFolder({}, name.slice(0, name.lastIndexOf('/') + 1));
  return { bucket, search: { ...folder, object: object.id } };
}
