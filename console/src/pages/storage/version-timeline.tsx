/** Every version of an object, newest first: what it was, and the way back to it. */
import { Badge, Button, Group, Text, Timeline } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { StorageObject, StorageObjectDetails } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { showDone } from '../../parts/notices.tsx';
import { sayBytes } from '../../parts/size.ts';
import { When } from '../../parts/when.tsx';
import { text } from '../../texts/text.ts';

export function VersionTimeline({ object }: { object: StorageObjectDetails }) {
  const queryClient = useQueryClient();
  const refresh = () => queryClient.invalidateQueries({ queryKey: ['files', object.bucket] });
  const restore = useMutation({
    mutationFn: (version: string) => cloud.objects.restore(object.id, version),
    onSuccess: async () => {
      showDone(text.storage.restored(object.name));
      await refresh();
    },
  });
  return (
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
            isBusy={restore.isPending}
            onRestore={(id) => restore.mutate(id)}
          />
        </Timeline.Item>
      ))}
    </Timeline>
  );
}

interface VersionActionsProps {
  readonly version: StorageObject;
  readonly isBusy: boolean;
  readonly onRestore: (versionId: string) => void;
}

function VersionActions({ version, isBusy, onRestore }: VersionActionsProps) {
  const { id, version_id, is_latest, is_delete_marker } = version;
  if (version_id === undefined || is_delete_marker === true) return null;
  return (
    <Group gap="xs" mt={4}>
      {is_latest !== true && (
        <Button size="compact-xs" variant="default" disabled={isBusy} onClick={() => onRestore(version_id)}>
          {text.storage.restore}
        </Button>
      )}
      <Button
        component="a"
        size="compact-xs"
        variant="subtle"
        href={cloud.objects.downloadUrl(id, { version_id })}
      >
        {text.storage.download}
      </Button>
    </Group>
  );
}
