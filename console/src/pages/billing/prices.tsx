/** What everything costs, and what it will. */
import { Stack, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Loaded } from '../../parts/page.tsx';
import { sayCredits } from '../../parts/price.ts';
import { When } from '../../parts/when.tsx';
import { text } from '../../texts/text.ts';
import { pricesQuery } from './queries.ts';

export function Prices() {
  const prices = useQuery(pricesQuery);
  return (
    <Loaded query={prices}>
      {(all) => (
        <Stack>
          <Text c="dimmed">{text.billing.pricesLead}</Text>
          <Table.ScrollContainer minWidth={520}>
            <Table verticalSpacing="xs">
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>{text.billing.resource}</Table.Th>
                  <Table.Th>{text.billing.meter}</Table.Th>
                  <Table.Th>{text.billing.variant}</Table.Th>
                  <Table.Th ta="right">{text.billing.price}</Table.Th>
                  <Table.Th>{text.billing.unit}</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {all.map((price) => (
                  <Table.Tr key={`${price.meter} ${price.instance_type} ${price.engine}`}>
                    <Table.Td>{price.resource_type}</Table.Td>
                    <Table.Td>{text.billing.meters[price.meter]}</Table.Td>
                    <Table.Td>{price.instance_type ?? price.engine ?? ''}</Table.Td>
                    <Table.Td ta="right">
                      {sayCredits(price.price)}
                      {price.upcoming.map((next) => (
                        <Text key={next.effective_from} size="sm" c="dimmed">
                          {text.billing.upcoming} <When at={next.effective_from} />: {sayCredits(next.price)}
                        </Text>
                      ))}
                    </Table.Td>
                    <Table.Td>{price.unit}</Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </Table.ScrollContainer>
        </Stack>
      )}
    </Loaded>
  );
}
