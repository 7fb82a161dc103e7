/** Every version of an object, newest first, with restore. */

import { Badge, Button, Group, Text, Timeline } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { StorageObject, StorageObjectDetails } from '../../../../../../sdk/index.ts';
import { cloud } from '../../../../cloud.ts';
import { useDownload } from '../../../../parts/commands/download.ts';
import { Confirm } from '../../../../parts/forms/dialog.tsx';
import { lazyPart } from '../../../../parts/lazy-part.tsx';
import { showDone } from '../../../../parts/notices.tsx';
import { sayBytes } from '../../../../parts/say.ts';
import { When } from '../../../../parts/tables/when.tsx';
import { text } from '../../../../texts/text.ts';
import { isText } from '../preview/preview.tsx';

const CompareDialog = lazyPart(() => import('./compare-dialog.tsx').then((made) => made.CompareDialog));

export function VersionTimeline({ object }: { object: StorageObjectDetails }) {
  const invalidates = [{ queryKey: ['files', object.bucket] }];
  const restore = useMutation({
    mutationFn: (version: string) => cloud.restoreObject(object.id, { version_id: version }),
    meta: { invalidates },
    onSuccess: () => showDone(text.storage.restored(object.name)),
  });
  const [compared, setCompared] = useState<string>();
  const [asked, setAsked] = useState<{ readonly version_id: string; readonly size: number }>();
  const remove = useMutation({
    mutationFn: (version_id: string) => cloud.deleteObject(object.id, { version_id }),
    meta: { shown: true, invalidates },
    onSuccess: () => {
      setAsked(undefined);
      showDone(text.storage.versionDeleted(object.name));
    },
  });
  return (
    <>
      <Timeline bulletSize={14} lineWidth={2} active={0}>
        {object.versions.map((version) => (
          <Timeline.Item
            key={version.version_id}
            title={
              <Group gap="xs">
                <When at={version.created_at} />
                {version.is_latest === true && <Badge variant="light">{text.storage.current}</Badge>}
              </Group>
            }
          >
            <Text size="sm" c="dimmed">
              {version.is_delete_marker === true ? text.storage.wasDeleted : sayBytes(version.size)}
            </Text>
            <VersionActions
              version={version}
              onCompare={
                isText(version) && !object.is_delete_marker && isText(object) ? setCompared : undefined
              }
              isBusy={restore.isPending}
              onRestore={(id) => restore.mutate(id)}
              onDelete={(version_id) => setAsked({ version_id, size: version.size })}
            />
          </Timeline.Item>
        ))}
      </Timeline>
      {object.versions_truncated && (
        <Text size="sm" c="dimmed" mt="md">
          {text.storage.versionsCut(object.versions.length)}
        </Text>
      )}
      {compared !== undefined && (
        <CompareDialog object={object} version={compared} onClose={() => setCompared(undefined)} />
      )}
      <Confirm
        isOpen={asked !== undefined}
        title={text.storage.deleteVersionAsk}
        action={text.storage.deleteVersion}
        isBusy={remove.isPending}
        error={remove.error}
        onConfirm={() => asked && remove.mutate(asked.version_id)}
        onClose={() => setAsked(undefined)}
      >
        {text.storage.deleteVersionLead(sayBytes(asked?.size ?? 0))}
      </Confirm>
    </>
  );
}

interface VersionActionsProps {
  readonly version: StorageObject;
  readonly isBusy: boolean;
  /** Absent: not text, or there is no version to compare with. */
  readonly onCompare: ((versionId: string) => void) | undefined;
  readonly onRestore: (versionId: string) => void;
  readonly onDelete: (versionId: string) => void;
}

function VersionActions({ version, isBusy, onCompare, onRestore, onDelete }: VersionActionsProps) {
  const { id, version_id, is_latest, is_delete_marker } = version;
  const download = useDownload('downloadObject', [id], { version_id });
  if (version_id === undefined || is_delete_marker === true) return null;
  return (
    <Group gap="xs" mt={4}>
      {is_latest !== true && (
        <Button size="compact-xs" variant="default" disabled={isBusy} onClick={() => onRestore(version_id)}>
          {text.storage.restore}
        </Button>
      )}
      <Button
        size="compact-xs"
        variant="subtle"
        loading={download.isPending}
        onClick={() => download.mutate()}
      >
        {text.storage.download}
      </Button>
      {is_latest !== true && onCompare !== undefined && (
        <Button size="compact-xs" variant="subtle" onClick={() => onCompare(version_id)}>
          {text.storage.compare}
        </Button>
      )}
      {is_latest !== true && (
        <Button size="compact-xs" variant="subtle" color="var(--wrong)" onClick={() => onDelete(version_id)}>
          {text.storage.deleteVersion}
        </Button>
      )}
    </Group>
  );
}
