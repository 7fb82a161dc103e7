/** The webhooks of this account, and their deliveries. */

import { BoltIcon, PlusIcon } from '@heroicons/react/24/outline';
import { Badge, Button, Group, Stack, Text } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { Webhook } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { CodeLine } from '../../parts/commands/code.tsx';
import { Dialog } from '../../parts/forms/dialog.tsx';
import { ManyDialog } from '../../parts/many/many-dialog.tsx';
import { Empty, Loaded, Page } from '../../parts/page.tsx';
import type { Column } from '../../parts/tables/data-table.tsx';
import { ListTable } from '../../parts/tables/list-table.tsx';
import type { ListView } from '../../parts/tables/list-view.ts';
import { When } from '../../parts/tables/when.tsx';
import { listsText } from '../../texts/lists-text.ts';
import { webhooksText } from '../../texts/pages/webhooks-text.ts';
import { text } from '../../texts/text.ts';
import { Deliveries } from './deliveries.tsx';
import { type StateFilter, secretQuery, webhooksQuery } from './queries.ts';
import { WebhookForm } from './webhook-form.tsx';
import { WebhookMenu } from './webhook-menu.tsx';

const words = webhooksText;
const lists = listsText.webhooks;

export function WebhooksPage() {
  const webhooks = useQuery(webhooksQuery);
  const { log, state = 'all', ...view } = useSearch({ from: '/shell/webhooks' });
  const navigate = useNavigate({ from: '/webhooks' });
  const [isCreating, setCreating] = useState(false);
  const [secretOf, setSecretOf] = useState<string>();
  // Stays open when the last webhook is gone.
  const [deleted, setDeleted] = useState<readonly Webhook[]>();
  const show = (id?: string, only: StateFilter = 'all') =>
    navigate({
      search: {
        ...view,
        ...(id !== undefined && { log: id }),
        ...(id !== undefined && only !== 'all' && { state: only }),
      },
    });
  const create = (
    <Button leftSection={<PlusIcon width={18} />} onClick={() => setCreating(true)}>
      {words.create}
    </Button>
  );
  return (
    <Page title={text.webhooks.title} lead={words.lead} actions={create}>
      <Loaded query={webhooks}>
        {(all) =>
          all.length === 0 ? (
            <Empty icon={BoltIcon} title={words.none} action={create}>
              {words.noneLead}
            </Empty>
          ) : (
            <WebhookTable
              webhooks={all}
              view={view}
              onLog={show}
              onSecret={setSecretOf}
              onDelete={setDeleted}
            />
          )
        }
      </Loaded>
      {deleted !== undefined && (
        <ManyDialog
          title={lists.title(deleted.length)}
          lead={lists.lead}
          action={lists.action(deleted.length)}
          label={text.webhooks.title}
          items={deleted}
          keyOf={({ id }) => id}
          nameOf={({ url }) => url}
          send={({ id }) => cloud.deleteWebhook(id)}
          queryKey={webhooksQuery.queryKey}
          isDangerous
          onClose={() => setDeleted(undefined)}
        />
      )}
      {isCreating && <WebhookForm onClose={() => setCreating(false)} onMade={setSecretOf} />}
      <Dialog opened={log !== undefined} onClose={() => show()} title={words.deliveries} size="xl">
        {log !== undefined && <Deliveries id={log} state={state} onState={(only) => show(log, only)} />}
      </Dialog>
      <Dialog opened={secretOf !== undefined} onClose={() => setSecretOf(undefined)} title={words.secret}>
        {secretOf !== undefined && <Secret id={secretOf} />}
      </Dialog>
    </Page>
  );
}

interface WebhookTableProps {
  readonly webhooks: readonly Webhook[];
  readonly view: ListView;
  readonly onLog: (id: string) => void;
  readonly onSecret: (id: string) => void;
  readonly onDelete: (webhooks: readonly Webhook[]) => void;
}

function WebhookTable({ webhooks, view, onLog, onSecret, onDelete }: WebhookTableProps) {
  const navigate = useNavigate({ from: '/webhooks' });
  const columns: readonly Column<Webhook>[] = [
    { name: words.address, id: 'address', isMono: true, value: ({ url }) => url, cell: ({ url }) => url },
    {
      name: words.events,
      id: 'events',
      value: ({ events }) => events.join(', '),
      cell: ({ events }) => events.join(', '),
    },
    { name: words.state, id: 'state', value: stateOf, cell: (webhook) => <State webhook={webhook} /> },
    {
      name: words.actions,
      isActions: true,
      cell: (webhook) => (
        <WebhookMenu
          webhook={webhook}
          onLog={() => onLog(webhook.id)}
          onSecret={() => onSecret(webhook.id)}
        />
      ),
    },
  ];
  return (
    <ListTable
      columns={columns}
      rows={webhooks}
      keyOf={({ id }) => id}
      nameOf={({ url }) => url}
      textOf={(webhook) => [webhook.url, ...webhook.events, stateOf(webhook)].join(' ')}
      view={view}
      onView={(search) => navigate({ search, replace: true })}
      many={{
        say: lists.say,
        actions: (selected) => (
          <Button size="compact-sm" variant="default" onClick={() => onDelete(selected)}>
            {lists.button}
          </Button>
        ),
        onDelete,
      }}
    />
  );
}

const stateOf = ({ enabled }: Webhook) => (enabled ? words.enabled : words.disabled);

function State({ webhook }: { webhook: Webhook }) {
  const { enabled, disabled_reason: reason, pending_deliveries: pending } = webhook;
  return (
    <>
      <Badge variant="light" color={enabled ? 'teal' : 'red'}>
        {stateOf(webhook)}
      </Badge>
      {reason !== null && <Text size="xs">{reason.message}</Text>}
      {pending > 0 && <Text size="xs">{words.pending(pending)}</Text>}
    </>
  );
}

/** The old secret also signs while programs are updated. */
const OVERLAP_SECONDS = 86_400;

function Secret({ id }: { id: string }) {
  const secret = useQuery(secretQuery(id));
  const queryClient = useQueryClient();
  const rotate = useMutation({
    mutationFn: (overlap: number) => cloud.rotateWebhookSecret(id, { overlap_seconds: overlap }),
    onSuccess: (rotated) => queryClient.setQueryData(secretQuery(id).queryKey, rotated),
  });
  return (
    <Stack pb="sm">
      <Text size="sm">{webhooksText.secretLead}</Text>
      <Loaded query={secret}>
        {({ secret: value, previous_expires_at: ends }) => (
          <>
            <CodeLine value={value} label={webhooksText.copySecret} />
            {ends !== null && (
              <Text size="sm">
                {webhooksText.previousSigns} <When at={ends} />.
              </Text>
            )}
          </>
        )}
      </Loaded>
      <Text size="sm" c="dimmed">
        {webhooksText.rotateLead}
      </Text>
      <Group gap="xs">
        <Button
          variant="default"
          loading={rotate.isPending && rotate.variables > 0}
          onClick={() => rotate.mutate(OVERLAP_SECONDS)}
        >
          {webhooksText.rotate}
        </Button>
        <Button
          variant="default"
          color="red"
          loading={rotate.isPending && rotate.variables === 0}
          onClick={() => rotate.mutate(0)}
        >
          {webhooksText.rotateNow}
        </Button>
      </Group>
    </Stack>
  );
}
