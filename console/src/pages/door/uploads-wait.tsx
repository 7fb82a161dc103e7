import { Alert } from '@mantine/core';
import { useSyncExternalStore } from 'react';
import { text } from '../../texts/text.ts';
import { isOpen, uploadQueue } from '../../uploads/upload-queue.ts';

export function UploadsWait() {
  const { items } = useSyncExternalStore(uploadQueue.subscribe, uploadQueue.snapshot);
  const open = items.filter(isOpen).length;
  return open > 0 && <Alert color="petrol">{text.door.uploadsWait(open)}</Alert>;
}
