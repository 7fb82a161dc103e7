/** One object: preview, properties, versions and actions. */

import { ArrowDownTrayIcon, ArrowUturnLeftIcon, PencilIcon, TrashIcon } from '@heroicons/react/24/outline';
import { Button, Code, Group, Stack, Tabs, Text } from '@mantine/core';
import { useState } from 'react';
import type { StorageObjectDetails } from '../../../../../sdk/index.ts';
import { CallSample } from '../../../parts/commands/call-sample.tsx';
import { placeWord } from '../../../parts/commands/client-commands.ts';
import { CopyCommand } from '../../../parts/commands/copy-command.tsx';
import { useDownload } from '../../../parts/commands/download.ts';
import { sayBytes, sayName } from '../../../parts/say.ts';
import { When } from '../../../parts/tables/when.tsx';
import { text } from '../../../texts/text.ts';
import { LabelsForm } from '../buckets/labels-form.tsx';
import { SharePanel } from '../sharing/share-panel.tsx';
import classes from '../storage.module.css';
import { useDelete, useRestore } from './delete-restore.tsx';
import { Preview } from './preview/preview.tsx';
import { VersionTimeline } from './versions/version-timeline.tsx';

interface ObjectDetailsProps {
  readonly object: StorageObjectDetails;
  readonly isVersioned: boolean;
  readonly onGone: () => void;
}

export function ObjectDetails({ object, isVersioned, onGone }: ObjectDetailsProps) {
  const { bucket, is_delete_marker: isDeleted, versions } = object;
  const deleting = useDelete({ bucket, isVersioned, onDone: onGone });
  const restoring = useRestore({ bucket, onDone: onGone });
  const download = useDownload('downloadObject', [object.id]);
  const last = versions.find(({ is_delete_marker }) => is_delete_marker !== true);
  return (
    <Stack>
      <Preview object={object} />
      {isDeleted && last !== undefined && (
        <Button
          leftSection={<ArrowUturnLeftIcon width={18} />}
          style={{ alignSelf: 'start' }}
          loading={restoring.isPending}
          onClick={() => restoring.mutate([last])}
        >
          {text.storage.restore}
        </Button>
      )}
      {!isDeleted && (
        <Group gap="xs">
          <Button
            loading={download.isPending}
            onClick={() => download.mutate()}
            leftSection={<ArrowDownTrayIcon width={18} />}
          >
            {text.storage.download}
          </Button>
          <Button
            variant="default"
            leftSection={<TrashIcon width={18} />}
            loading={deleting.isBusy}
            onClick={() => deleting.ask([object])}
          >
            {text.storage.delete}
          </Button>
          <CopyCommand command={`cloudlet cp ${placeWord(bucket, object.name)} .`} />
        </Group>
      )}
      {deleting.question}
      <Tabs defaultValue="facts">
        <Tabs.List>
          <Tabs.Tab value="facts">{text.storage.facts}</Tabs.Tab>
          <Tabs.Tab value="versions">{text.storage.versionsOf(object.versions.length)}</Tabs.Tab>
          {!isDeleted && <Tabs.Tab value="share">{text.storage.share}</Tabs.Tab>}
        </Tabs.List>
        <Tabs.Panel value="facts" pt="md">
          <Facts object={object} />
        </Tabs.Panel>
        <Tabs.Panel value="versions" pt="md">
          <VersionTimeline object={object} />
        </Tabs.Panel>
        <Tabs.Panel value="share" pt="md">
          <SharePanel bucket={bucket} name={object.name} />
        </Tabs.Panel>
      </Tabs>
    </Stack>
  );
}

function Facts({ object }: { object: StorageObjectDetails }) {
  const [isEdited, setEdited] = useState(false);
  if (isEdited) return <LabelsForm object={object} onEnd={() => setEdited(false)} />;
  const facts = [
    [text.storage.wholeName, sayName(object.name)],
    [text.storage.size, sayBytes(object.size)],
    [text.storage.type, object.mime_type],
    [text.storage.uploaded, <When key="created" at={object.created_at} />],
    [text.storage.lastRead, <When key="accessed" at={object.last_accessed} />],
    [text.storage.checksum, <Code key="etag">{object.etag}</Code>],
    [text.storage.id, <Code key="id">{object.id}</Code>],
  ] as const;
  return (
    <Stack>
      <dl className={classes.facts}>
        {facts.map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {object.metadata !== null && (
        <div>
          <Text size="sm" c="dimmed" mb={4}>
            {text.storage.metadata}
          </Text>
          <Code block>{JSON.stringify(object.metadata, null, 2)}</Code>
        </div>
      )}
      {!object.is_delete_marker && (
        <Button
          variant="default"
          leftSection={<PencilIcon width={16} aria-hidden />}
          style={{ alignSelf: 'start' }}
          onClick={() => setEdited(true)}
        >
          {text.storage.editLabels}
        </Button>
      )}
      <CallSample operation="downloadObject" args={[object.id]} />
    </Stack>
  );
}
