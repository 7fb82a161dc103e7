/** Deliveries of a webhook with their attempts, and replay. */

import { Badge, Button, Group, SegmentedControl, Stack, Table, Text } from '@mantine/core';
import { useInfiniteQuery, useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { WebhookDelivery } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { CodeLine } from '../../parts/code.tsx';
import { ListTable } from '../../parts/list-table.tsx';
import { showDone } from '../../parts/notices.tsx';
import { Loaded } from '../../parts/page.tsx';
import { When } from '../../parts/when.tsx';
import { text } from '../../texts/text.ts';
import { deliveriesQuery, STATES, type StateFilter } from './queries.ts';

const words = text.webhooks;
const COLORS = { delivered: 'teal', pending: 'blue', failed: 'red' };
const HEADS = [
  { name: words.event },
  { name: words.state },
  { name: words.when },
  { name: words.actions, isHidden: true },
];

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
    onSuccess: ({ recovered }) => showDone(words.recovered(recovered)),
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
          return (
            <ListTable heads={HEADS}>
              {all.map((delivery) => (
                <Row key={delivery.id} webhook={id} delivery={delivery} />
              ))}
            </ListTable>
          );
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

function Row({ webhook, delivery }: { webhook: string; delivery: WebhookDelivery }) {
  const { id, type, state, created_at: at, attempts, reason } = delivery;
  const [isOpen, setOpen] = useState(false);
  const replay = useMutation({
    mutationFn: () => cloud.replayWebhookDelivery(webhook, id),
    meta: { invalidates: [{ queryKey: ['webhooks', webhook, 'deliveries'] }] },
  });
  const last = attempts.at(-1);
  return (
    <>
      <Table.Tr>
        <Table.Td>{type}</Table.Td>
        <Table.Td>
          <Badge variant="light" color={COLORS[state]}>
            {words.deliveryStates[state]}
          </Badge>
          <Text size="xs">{last === undefined ? reason : sayAttempt(last)}</Text>
        </Table.Td>
        <Table.Td>
          <When at={at} />
        </Table.Td>
        <Table.Td>
          <Group gap="xs" justify="flex-end" wrap="nowrap">
            <Button
              size="compact-sm"
              variant="subtle"
              aria-label={words.detailsOf(type)}
              aria-expanded={isOpen}
              onClick={() => setOpen(!isOpen)}
            >
              {words.details}
            </Button>
            <Button
              size="compact-sm"
              variant="default"
              aria-label={words.replayOf(type)}
              onClick={() => replay.mutate()}
            >
              {words.replay}
            </Button>
          </Group>
        </Table.Td>
      </Table.Tr>
      {isOpen && (
        <Table.Tr>
          <Table.Td colSpan={HEADS.length}>
            <DeliveryDetails delivery={delivery} />
          </Table.Td>
        </Table.Tr>
      )}
    </>
  );
}

/** One delivery: what is sent, and what each attempt was answered. */
type Attempt = WebhookDelivery['attempts'][number];

function DeliveryDetails({ delivery }: { delivery: WebhookDelivery }) {
  const { event_id: eventId, payload, reason, next_attempt_at: next, attempts } = delivery;
  return (
    <Stack gap="xs" style={{ position: 'sticky', left: 8, maxWidth: 'calc(100vw - 88px)' }}>
      <Text size="sm">
        <span className="mono">{eventId}</span>
        {reason !== null && `: ${reason}`}
      </Text>
      <CodeLine value={JSON.stringify(payload, null, 2)} label={text.webhooks.copyPayload} />
      {attempts.map((attempt) => (
        <Stack key={attempt.at} gap={4}>
          <Text size="sm">
            <When at={attempt.at} />: {sayAttempt(attempt)}
          </Text>
          {attempt.response !== null && attempt.response !== '' && (
            <CodeLine value={attempt.response} label={text.webhooks.copyResponse} />
          )}
        </Stack>
      ))}
      {next !== null && attempts.length > 0 && (
        <Text size="sm" c="dimmed">
          {text.webhooks.nextAttempt} <When at={next} />.
        </Text>
      )}
    </Stack>
  );
}

function sayAttempt({ error, status, duration_ms: ms }: Attempt): string {
  return error ?? text.webhooks.answered(String(status), String(ms));
}
