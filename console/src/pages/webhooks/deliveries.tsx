/** What was sent to a webhook, how it went, and once more. */
import { Badge, Button, Table, Text } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { WebhookDelivery } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { ListTable } from '../../parts/list-table.tsx';
import { Loaded } from '../../parts/page.tsx';
import { When } from '../../parts/when.tsx';
import { text } from '../../texts/text.ts';
import { deliveriesQuery } from './queries.ts';

const words = text.webhooks;
const COLORS = { delivered: 'teal', pending: 'blue', failed: 'red' };

export function Deliveries({ id }: { id: string }) {
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
          <Text c="dimmed">{words.noDeliveries}</Text>
        ) : (
          <ListTable
            heads={[
              { name: words.event },
              { name: words.state },
              { name: words.when },
              { name: words.actions, isHidden: true },
            ]}
          >
            {all.map((delivery) => (
              <Table.Tr key={delivery.id}>
                <Table.Td>{delivery.type}</Table.Td>
                <Table.Td>
                  <Badge variant="light" color={COLORS[delivery.state]}>
                    {words.deliveryStates[delivery.state]}
                  </Badge>
                  <Text size="xs">{lastAttempt(delivery)}</Text>
                </Table.Td>
                <Table.Td>
                  <When at={delivery.created_at} />
                </Table.Td>
                <Table.Td ta="right">
                  <Button
                    size="compact-sm"
                    variant="default"
                    aria-label={words.replayOf(delivery.type)}
                    onClick={() => replay.mutate(delivery.id)}
                  >
                    {words.replay}
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
  return last.error ?? words.answered(String(last.status), String(last.duration_ms));
}
