/** Deliveries of a webhook with their attempts, and replay. */

import { Badge, Button, Group, SegmentedControl, Stack, Text } from '@mantine/core';
import { useInfiniteQuery, useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { WebhookDelivery } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { CodeLine } from '../../parts/commands/code.tsx';
import { showDone } from '../../parts/notices.tsx';
import { Loaded } from '../../parts/page.tsx';
import { type Column, DataTable } from '../../parts/tables/data-table.tsx';
import { When } from '../../parts/tables/when.tsx';
import { webhooksText } from '../../texts/pages/webhooks-text.ts';
import { deliveriesQuery, STATES, type StateFilter } from './queries.ts';

const words = webhooksText;
const COLORS = { delivered: 'teal', pending: 'blue', failed: 'red' };
interface DeliveriesProps {
  readonly id: string;
  readonly state: StateFilter;
  readonly onState: (state: StateFilter) => void;
}

export function Deliveries({ id, state, onState }: DeliveriesProps) {
  const deliveries = useInfiniteQuery(deliveriesQuery(id, state));
  const recover = useMutation({
    mutationFn: () => cloud.recoverWebhook(id, { since: '1970-01-01 00:00:00' }),
    meta: { invalidates: [{ queryKey: ['webhooks', id, 'deliveries'] }] },
    onSuccess: ({ recovered, remaining }) => showDone(words.recovered(recovered, remaining)),
  });
  return (
    <Stack pb="sm">
      <Group justify="space-between">
        <SegmentedControl
          size="xs"
          aria-label={words.state}
          data={['all' as const, ...STATES].map((value) => ({ value, label: words.filters[value] }))}
          value={state}
          onChange={onState}
        />
        {state === 'failed' && (
          <Button size="xs" variant="default" loading={recover.isPending} onClick={() => recover.mutate()}>
            {words.recover}
          </Button>
        )}
      </Group>
      <Loaded query={deliveries}>
        {({ pages }) => {
          const all = pages.flatMap(({ items }) => items);
          if (all.length === 0) {
            return <Text c="dimmed">{state === 'all' ? words.noDeliveries : words.noneInState}</Text>;
          }
          return <DeliveryTable webhook={id} deliveries={all} />;
        }}
      </Loaded>
      {deliveries.hasNextPage && (
        <Button
          variant="default"
          loading={deliveries.isFetchingNextPage}
          onClick={() => deliveries.fetchNextPage()}
        >
          {words.older}
        </Button>
      )}
    </Stack>
  );
}

function DeliveryTable({ webhook, deliveries }: { webhook: string; deliveries: readonly WebhookDelivery[] }) {
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const columns: readonly Column<WebhookDelivery>[] = [
    { name: words.event, cell: ({ type }) => type },
    { name: words.state, cell: (delivery) => <State delivery={delivery} /> },
    { name: words.when, cell: ({ created_at: at }) => <When at={at} /> },
    {
      name: words.actions,
      isActions: true,
      cell: ({ id, type }) => (
        <Group gap="xs" justify="flex-end" wrap="nowrap">
          <Button
            size="compact-sm"
            variant="subtle"
            aria-label={words.detailsOf(type)}
            aria-expanded={opened.has(id)}
            onClick={() => setOpened((before) => before.symmetricDifference(new Set([id])))}
          >
            {words.details}
          </Button>
          <Replay webhook={webhook} id={id} type={type} />
        </Group>
      ),
    },
  ];
  return (
    <DataTable
      columns={columns}
      rows={deliveries}
      keyOf={({ id }) => id}
      below={(delivery) => (opened.has(delivery.id) ? <DeliveryDetails delivery={delivery} /> : null)}
    />
  );
}

function State({ delivery: { state, attempts, reason } }: { delivery: WebhookDelivery }) {
  const last = attempts.at(-1);
  return (
    <>
      <Badge variant="light" color={COLORS[state]}>
        {words.deliveryStates[state]}
      </Badge>
      <Text size="xs">{reason ?? (last && sayAttempt(last))}</Text>
    </>
  );
}

function Replay({ webhook, id, type }: { webhook: string } & Pick<WebhookDelivery, 'id' | 'type'>) {
  const replay = useMutation({
    mutationFn: () => cloud.replayWebhookDelivery(webhook, id),
    meta: { invalidates: [{ queryKey: ['webhooks', webhook, 'deliveries'] }] },
  });
  return (
    <Button
      size="compact-sm"
      variant="default"
      aria-label={words.replayOf(type)}
      onClick={() => replay.mutate()}
    >
      {words.replay}
    </Button>
  );
}

/** One delivery: the request, and the response of each attempt. */
type Attempt = WebhookDelivery['attempts'][number];

function DeliveryDetails({ delivery }: { delivery: WebhookDelivery }) {
  const { event_id: eventId, payload, reason, next_attempt_at: next, attempts } = delivery;
  return (
    <Stack gap="xs" style={{ position: 'sticky', left: 8, maxWidth: 'calc(100vw - 88px)' }}>
      <Text size="sm">
        <span className="mono">{eventId}</span>
        {reason !== null && `: ${reason}`}
      </Text>
      <CodeLine value={JSON.stringify(payload, null, 2)} label={webhooksText.copyPayload} />
      {attempts.map((attempt) => (
        <Stack key={attempt.at} gap={4}>
          <Text size="sm">
            <When at={attempt.at} />: {sayAttempt(attempt)}
          </Text>
          {attempt.response !== null && attempt.response !== '' && (
            <CodeLine value={attempt.response} label={webhooksText.copyResponse} />
          )}
        </Stack>
      ))}
      {next !== null && attempts.length > 0 && (
        <Text size="sm" c="dimmed">
          {webhooksText.nextAttempt} <When at={next} />.
        </Text>
      )}
    </Stack>
  );
}

function sayAttempt({ error, status, duration_ms: ms }: Attempt): string {
  return error ?? webhooksText.answered(String(status), String(ms));
}
