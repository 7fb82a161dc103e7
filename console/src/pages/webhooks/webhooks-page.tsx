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
import { Empty, Loaded, Page } from '../../parts/page.tsx';
import { type Column, DataTable } from '../../parts/tables/data-table.tsx';
import { When } from '../../parts/tables/when.tsx';
import { webhooksText } from '../../texts/pages/webhooks-text.ts';
import { text } from '../../texts/text.ts';
import { Deliveries } from './deliveries.tsx';
import { type StateFilter, secretQuery, webhooksQuery } from './queries.ts';
import { WebhookForm } from './webhook-form.tsx';
import { WebhookMenu } from './webhook-menu.tsx';

const words = webhooksText;

export function WebhooksPage() {
  const webhooks = useQuery(webhooksQuery);
  const { log, state = 'all' } = useSearch({ from: '/shell/webhooks' });
  const navigate = useNavigate({ from: '/webhooks' });
  const [isCreating, setCreating] = useState(false);
  const [secretOf, setSecretOf] = useState<string>();
  const show = (id?: string, only: StateFilter = 'all') =>
    navigate({ search: id === undefined ? {} : only === 'all' ? { log: id } : { log: id, state: only } });
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
            <WebhookTable webhooks={all} onLog={show} onSecret={setSecretOf} />
          )
        }
      </Loaded>
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
  readonly onLog: (id: string) => void;
  readonly onSecret: (id: string) => void;
}

function WebhookTable({ webhooks, onLog, onSecret }: WebhookTableProps) {
  const columns: readonly Column<Webhook>[] = [
    { name: words.address, isMono: true, cell: ({ url }) => url },
    { name: words.events, cell: ({ events }) => events.join(', ') },
    { name: words.state, cell: (webhook) => <State webhook={webhook} /> },
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
  return <DataTable columns={columns} rows={webhooks} keyOf={({ id }) => id} />;
}

function State({ webhook }: { webhook: Webhook }) {
  const { enabled, disabled_reason: reason, pending_deliveries: pending } = webhook;
  return (
    <>
      <Badge variant="light" color={enabled ? 'teal' : 'red'}>
        {enabled ? words.enabled : words.disabled}
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
