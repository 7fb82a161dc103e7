/** Ways to upload: dropping files on a page, and a file button. */

import { CloudArrowUpIcon } from '@heroicons/react/24/outline';
import { FileButton, type FileButtonProps } from '@mantine/core';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { cloud } from '../cloud.ts';
import { showRefusal } from '../parts/notices.tsx';
import { queryClient } from '../queries.ts';
import { text } from '../texts/text.ts';
import { chosenFiles, droppedFiles, type FoundFile } from './dropped-files.ts';
import { uploadQueue } from './upload-queue.ts';
import classes from './uploads.module.css';

const DEFAULT_BUCKET = 'uploads';

/**
 * Uploads into the displayed folder; elsewhere into the only bucket, or into `uploads`, which is
 * created. Shows errors itself.
 */
export function useUpload(): (files: readonly FoundFile[]) => Promise<void> {
  const { bucket: shown } = useParams({ strict: false });
  const { prefix = '' } = useSearch({ strict: false });
  const navigate = useNavigate();
  return async (files) => {
    if (files.length === 0) return;
    const folder = shown === undefined ? '' : prefix;
    try {
      const bucket = shown ?? (await findBucket());
      uploadQueue.add(files.map(({ file, path }) => ({ file, bucket, name: folder + path })));
      if (shown === undefined) await navigate({ to: '/storage/$bucket', params: { bucket } });
    } catch (error) {
      showRefusal(error);
    }
  };
}

async function findBucket(): Promise<string> {
  const buckets = await cloud.listBuckets().all();
  const [only] = buckets;
  if (buckets.length === 1 && only !== undefined) return only.name;
  if (!buckets.some(({ name }) => name === DEFAULT_BUCKET)) {
    await cloud.createBucket({ name: DEFAULT_BUCKET, versioning: true });
    await queryClient.invalidateQueries({ queryKey: ['buckets'] });
  }
  return DEFAULT_BUCKET;
}

export function ChooseFiles({ children }: { children: FileButtonProps['children'] }) {
  const upload = useUpload();
  const forget = useRef<() => void>(null);
  return (
    <FileButton
      multiple
      resetRef={forget}
      onChange={(files) => {
        void upload(chosenFiles(files));
        // Otherwise, browsers ignore choosing the same file again.
        forget.current?.();
      }}
    >
      {children}
    </FileButton>
  );
}

const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes('Files') === true;

/** Accepts files dropped anywhere in the window, with an overlay while dragging. */
export function DropZone() {
  const [isOver, setOver] = useState(false);
  const upload = useUpload();
  useEffect(() => {
    const over = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event: DragEvent) => {
      if (event.relatedTarget === null) setOver(false);
    };
    const drop = (event: DragEvent) => {
      if (event.dataTransfer === null || !hasFiles(event)) return;
      event.preventDefault();
      setOver(false);
      droppedFiles(event.dataTransfer).then(upload).catch(showRefusal);
    };
    window.addEventListener('dragover', over);
    window.addEventListener('dragleave', leave);
    window.addEventListener('drop', drop);
    return () => {
      window.removeEventListener('dragover', over);
      window.removeEventListener('dragleave', leave);
      window.removeEventListener('drop', drop);
    };
  });
  if (!isOver) return null;
  return (
    <div className={classes.dropZone}>
      <CloudArrowUpIcon width={48} aria-hidden />
      {text.uploads.dropHere}
    </div>
  );
}
