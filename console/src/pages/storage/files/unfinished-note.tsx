/** A note about interrupted uploads, in their bucket. */
import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useSyncExternalStore } from 'react';
import { AnchorLink } from '../../../parts/tables/links.tsx';
import { s3Text } from '../../../texts/s3-text.ts';
import { isOpen, uploadQueue } from '../../../uploads/upload-queue.ts';
import { uploadsQuery } from '../queries.ts';

export function UnfinishedNote({ bucket }: { bucket: string }) {
  const { data: all = [] } = useQuery({ ...uploadsQuery(bucket), refetchInterval: false });
  const { items } = useSyncExternalStore(uploadQueue.subscribe, uploadQueue.snapshot);
  if (all.length === 0) return null;
  const underWay = new Set(items.filter(isOpen).map(({ uploadId }) => uploadId));
  const left = all.filter(({ upload_id: id }) => !underWay.has(id)).length;
  if (left === 0) return null;
  return (
    <Text size="sm" role="status">
      {s3Text.uploads.unfinished(left)}{' '}
      <AnchorLink to="/storage/$bucket" params={{ bucket }} search={{ tab: 'uploads' }} size="sm">
        {s3Text.uploads.unfinishedLink}
      </AnchorLink>
    </Text>
  );
}
