/** Where this administrator's events are sent, and how each delivery went. */
import { Badge, Button, Group, MultiSelect, Stack, Table, Text, TextInput } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { NewWebhook, Webhook, WebhookDelivery } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { CallSample } from '../../parts/call-sample.tsx';
import { Confirm } from '../../parts/confirm.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { FormModal } from '../../parts/form-modal.tsx';
import { ListTable } from '../../parts/list-table.tsx';
import { Loaded } from '../../parts/page.tsx';
import { When } from '../../parts/when.tsx';
import { text } from '../../texts/text.ts';
import { deliveriesQuery, webhooksQuery } from './queries.ts';

const { administration } = text;
const EVENTS = [
  ...['*', 'credits.low', 'credits.exhausted', 'credits.restored'],
  ...['database.created', 'database.deleted', 'database.failed', 'database.read_only', 'database.resumed'],
  ...['database.suspended', 'recovery_point.completed', 'recovery_point.created', 'recovery_point.damaged'],
  ...['recovery_point.deleted', 'recovery_point.failed', 'recovery_point.verified'],
  ...['vm.started', 'vm.stopped', 'vm.failed', 'vm.deleted'],
];

export function Webhooks() {
  const webhooks = useQuery(webhooksQuery);
  const [isCreating, setCreating] = useState(false);
  const [shown, setShown] = useState<string>();
  return (
    <Stack>
      <Group justify="space-between">
        <Text c="dimmed">{administration.webhooksLead}</Text>
        <Button onClick={() => setCreating(true)}>{administration.createWebhook}</Button>
      </Group>
      <Loaded query={webhooks}>
        {(all) =>
          all.length === 0 ? (
            <Text c="dimmed">{administration.noWebhooks}</Text>
          ) : (
            <ListTable
              heads={[
                { name: administration.address },
                { name: administration.events },
                { name: administration.state },
                { name: administration.actions, isHidden: true },
              ]}
            >
              {all.map((webhook) => (
                <WebhookRow key={webhook.id} webhook={webhook} onShow={() => setShown(webhook.id)} />
              ))}
            </ListTable>
          )
        }
      </Loaded>
      {isCreating && <WebhookForm onClose={() => setCreating(false)} />}
      <Dialog
        opened={shown !== undefined}
        onClose={() => setShown(undefined)}
        title={administration.deliveries}
        size="xl"
      >
        {shown !== undefined && <Deliveries id={shown} />}
      </Dialog>
    </Stack>
  );
}

function useRenew() {
  const queryClient = useQueryClient();
  return () => queryClient.invalidateQueries({ queryKey: webhooksQuery.queryKey });
}

function WebhookRow({ webhook, onShow }: { webhook: Webhook; onShow: () => void }) {
  const { id, url, events, enabled, disabled_reason: reason } = webhook;
  const [isAsking, setAsking] = useState(false);
  const renew = useRenew();
  const test = useMutation({ mutationFn: () => cloud.webhooks.test(id), onSuccess: onShow });
  const change = useMutation({
    mutationFn: () => cloud.webhooks.change(id, { enabled: !enabled }),
    onSuccess: renew,
  });
  const remove = useMutation({
    mutationFn: () => cloud.webhooks.delete(id),
    meta: { shown: true },
    onSuccess: renew,
  });
  return (
    <Table.Tr>
      <Table.Td className="mono" style={{ overflowWrap: 'anywhere' }}>
        {url}
      </Table.Td>
      <Table.Td>{events.join(', ')}</Table.Td>
      <Table.Td>
        <Badge variant="light" color={enabled ? 'teal' : 'red'}>
          {enabled ? administration.enabled : administration.disabled}
        </Badge>
        {reason !== null && <Text size="xs">{reason.message}</Text>}
      </Table.Td>
      <Table.Td>
        <Group gap="xs" wrap="nowrap" justify="flex-end">
          <Button size="compact-sm" variant="default" onClick={onShow}>
            {administration.deliveries}
          </Button>
          <Button size="compact-sm" variant="default" loading={test.isPending} onClick={() => test.mutate()}>
            {administration.sendTest}
          </Button>
          <Button size="compact-sm" variant="default" onClick={() => change.mutate()}>
            {enabled ? administration.disable : administration.enable}
          </Button>
          <Button size="compact-sm" variant="default" onClick={() => setAsking(true)}>
            {administration.delete}
          </Button>
        </Group>
        <Confirm
          isOpen={isAsking}
          title={administration.deleteWebhookAsk}
          action={administration.delete}
          isBusy={remove.isPending}
          error={remove.error}
          onConfirm={() => remove.mutate()}
          onClose={() => setAsking(false)}
        >
          {url}
        </Confirm>
      </Table.Td>
    </Table.Tr>
  );
}

function WebhookForm({ onClose }: { onClose: () => void }) {
  const [url, setUrl] = useState('');
  const [events, setEvents] = useState<string[]>(['*']);
  const renew = useRenew();
  const webhook = { url, events } as NewWebhook;
  const create = useMutation({
    mutationFn: () => cloud.webhooks.create(webhook),
    meta: { shown: true },
    onSuccess: async () => {
      onClose();
      await renew();
    },
  });
  return (
    <FormModal
      isOpen
      title={administration.createWebhook}
      action={administration.createWebhook}
      isBusy={create.isPending}
      error={create.error}
      onSubmit={() => create.mutate()}
      onClose={onClose}
    >
      <TextInput
        data-autofocus
        label={administration.address}
        placeholder="https://example.com/hook"
        value={url}
        required
        withAsterisk={false}
        onChange={({ currentTarget }) => setUrl(currentTarget.value)}
      />
      <MultiSelect label={administration.events} data={EVENTS} value={events} onChange={setEvents} />
      <CallSample call="POST /api/webhooks" body={webhook} method="webhooks.create" args={[webhook]} />
    </FormModal>
  );
}

const COLORS = { delivered: 'teal', pending: 'blue', failed: 'red' };

function Deliveries({ id }: { id: string }) {
  const deliveries = useQuery(deliveriesQuery(id));
  const queryClient = useQueryClient();
  const replay = useMutation({
    mutationFn: (delivery: string) => cloud.webhooks.replay(id, delivery),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: deliveriesQuery(id).queryKey }),
  });
  return (
    <Loaded query={deliveries}>
      {(all) =>
        all.length === 0 ? (
          <Text c="dimmed">{administration.noDeliveries}</Text>
        ) : (
          <ListTable
            heads={[
              { name: administration.event },
              { name: administration.state },
              { name: administration.when },
              { name: administration.actions, isHidden: true },
            ]}
          >
            {all.map((delivery) => (
              <Table.Tr key={delivery.id}>
                <Table.Td>{delivery.type}</Table.Td>
                <Table.Td>
                  <Badge variant="light" color={COLORS[delivery.state]}>
                    {administration.deliveryStates[delivery.state]}
                  </Badge>
                  <Text size="xs">{lastAttempt(delivery)}</Text>
                </Table.Td>
                <Table.Td>
                  <When at={delivery.created_at} />
                </Table.Td>
                <Table.Td ta="right">
                  <Button size="compact-sm" variant="default" onClick={() => replay.mutate(delivery.id)}>
                    {administration.replay}
                  </Button>
                </Table.Td>
              </Table.Tr>
            ))}
          </ListTable>
        )
      }
    </Loaded>
  );
}

function lastAttempt({ attempts, reason }: WebhookDelivery): string {
  const last = attempts.at(-1);
  if (last === undefined) return reason ?? '';
  return last.error ?? administration.answered(String(last.status), String(last.duration_ms));
}
