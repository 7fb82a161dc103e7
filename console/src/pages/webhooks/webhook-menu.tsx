/** The menu of a webhook: deliveries, test, secret, edit, enable, delete. */

import { EllipsisHorizontalIcon } from '@heroicons/react/24/outline';
import { ActionIcon, Menu } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { Webhook } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { Confirm } from '../../parts/forms/dialog.tsx';
import { webhooksText } from '../../texts/pages/webhooks-text.ts';
import { webhooksQuery } from './queries.ts';
import { WebhookForm } from './webhook-form.tsx';

const words = webhooksText;

interface WebhookMenuProps {
  readonly webhook: Webhook;
  readonly onLog: () => void;
  readonly onSecret: () => void;
}

export function WebhookMenu({ webhook, onLog, onSecret }: WebhookMenuProps) {
  const { id, url, enabled } = webhook;
  const [isEditing, setEditing] = useState(false);
  const [isAsking, setAsking] = useState(false);
  const invalidates = [webhooksQuery];
  const test = useMutation({
    mutationFn: () => cloud.testWebhook(id),
    meta: { invalidates },
    onSuccess: onLog,
  });
  const change = useMutation({
    mutationFn: () => cloud.changeWebhook(id, { enabled: !enabled }),
    meta: { invalidates },
  });
  const remove = useMutation({
    mutationFn: () => cloud.deleteWebhook(id),
    meta: { shown: true, invalidates },
  });
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" aria-label={words.actionsOf(url)}>
            <EllipsisHorizontalIcon width={20} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={onLog}>{words.deliveries}</Menu.Item>
          <Menu.Item onClick={() => test.mutate()}>{words.sendTest}</Menu.Item>
          <Menu.Item onClick={onSecret}>{words.secret}</Menu.Item>
          <Menu.Item onClick={() => setEditing(true)}>{words.edit}</Menu.Item>
          <Menu.Item onClick={() => change.mutate()}>{enabled ? words.disable : words.enable}</Menu.Item>
          <Menu.Divider />
          <Menu.Item color="var(--wrong)" onClick={() => setAsking(true)}>
            {words.delete}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {isEditing && <WebhookForm present={webhook} onClose={() => setEditing(false)} />}
      <Confirm
        isOpen={isAsking}
        title={words.deleteAsk}
        action={words.delete}
        isBusy={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate()}
        onClose={() => setAsking(false)}
      >
        {url}
      </Confirm>
    </>
  );
}
