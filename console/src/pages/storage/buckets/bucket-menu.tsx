/** The menu of a bucket: versioning, encryption, delete; and its badges. */

import {
  EllipsisHorizontalIcon,
  LockClosedIcon,
  RectangleStackIcon,
  TrashIcon,
} from '@heroicons/react/24/outline';
import { ActionIcon, Badge, Menu } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { Bucket } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { Confirm } from '../../../parts/forms/dialog.tsx';
import { showDone } from '../../../parts/notices.tsx';
import { text } from '../../../texts/text.ts';
import { bucketsQuery } from '../queries.ts';
import { type BucketSwitch, SwitchQuestion, switchesOf } from './bucket-switches.tsx';

export function BucketMenu({ bucket }: { bucket: Bucket }) {
  const [isAsked, setAsked] = useState(false);
  const [switched, setSwitched] = useState<BucketSwitch | null>(null);
  const navigate = useNavigate();
  const meta = { shown: true, invalidates: [bucketsQuery] };
  const { versions, encryption } = switchesOf(bucket);
  const remove = useMutation({
    mutationFn: () => cloud.deleteBucket(bucket.name, bucket.version_count > 0 ? { force: true } : {}),
    meta,
    onSuccess: async () => {
      setAsked(false);
      showDone(text.storage.bucketDeleted(bucket.name));
      await navigate({ to: '/storage' });
    },
  });
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" aria-label={text.storage.actionsOf(bucket.name)}>
            <EllipsisHorizontalIcon width={20} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item leftSection={<RectangleStackIcon width={18} />} onClick={() => setSwitched(versions)}>
            {versions.action}
          </Menu.Item>
          <Menu.Item leftSection={<LockClosedIcon width={18} />} onClick={() => setSwitched(encryption)}>
            {encryption.action}
          </Menu.Item>
          <Menu.Divider />
          <Menu.Item
            color="var(--wrong)"
            leftSection={<TrashIcon width={18} />}
            onClick={() => setAsked(true)}
          >
            {text.storage.deleteBucket}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <SwitchQuestion bucket={bucket.name} asked={switched} onClose={() => setSwitched(null)} />
      <Confirm
        isOpen={isAsked}
        title={text.storage.deleteBucketAsk(bucket.name)}
        action={text.storage.deleteBucket}
        typed={bucket.version_count === 0 ? undefined : bucket.name}
        isBusy={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate()}
        onClose={() => setAsked(false)}
      >
        {bucket.version_count === 0
          ? text.storage.deleteEmptyLead
          : text.storage.deleteFullLead(bucket.object_count, bucket.version_count)}
      </Confirm>
    </>
  );
}

/** Only properties that differ from an ordinary bucket's. */
export function BucketBadges({ bucket }: { bucket: Pick<Bucket, 'versioning' | 'encryption'> }) {
  return (
    <>
      {bucket.versioning && (
        <Badge variant="light" color="petrol">
          {text.storage.versioned}
        </Badge>
      )}
      {bucket.encryption && (
        <Badge variant="light" color="gray">
          {text.storage.encrypted}
        </Badge>
      )}
    </>
  );
}
