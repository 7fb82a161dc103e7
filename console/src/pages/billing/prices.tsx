/** Current and upcoming prices. */
import { Stack, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { ListTable } from '../../parts/list-table.tsx';
import { Loaded } from '../../parts/page.tsx';
import { sayCredits, sayPrice } from '../../parts/say.ts';
import { When } from '../../parts/when.tsx';
import { text } from '../../texts/text.ts';
import { pricesQuery } from './queries.ts';

const { resources } = text.billing;
const { engines } = text.databases;

const nameOf = (engine: string | null) => engines[engine as keyof typeof engines] ?? engine;

export function Prices() {
  return (
    <Stack>
      <Text c="dimmed">{text.billing.pricesLead}</Text>
      <PriceTable />
    </Stack>
  );
}

export function PriceTable() {
  const prices = useQuery(pricesQuery);
  return (
    <Loaded query={prices}>
      {(all) => (
        <ListTable
          heads={[
            { name: text.billing.resource },
            { name: text.billing.meter },
            { name: text.billing.variant },
            { name: text.billing.price, isNumber: true },
            { name: text.billing.unit },
          ]}
        >
          {all.map((price) => (
            <Table.Tr key={`${price.meter} ${price.instance_type} ${price.engine}`}>
              <Table.Td>{resources[price.resource_type as keyof typeof resources]}</Table.Td>
              <Table.Td>{text.billing.meters[price.meter]}</Table.Td>
              <Table.Td>{price.instance_type ?? nameOf(price.engine)}</Table.Td>
              <Table.Td ta="right">
                {sayPrice(price.price)}
                {price.upcoming.map((next) => (
                  <Text key={next.effective_from} size="sm" c="dimmed">
                    {text.billing.upcoming} <When at={next.effective_from} />: {sayCredits(next.price)}
                  </Text>
                ))}
              </Table.Td>
              <Table.Td>{price.unit}</Table.Td>
            </Table.Tr>
          ))}
        </ListTable>
      )}
    </Loaded>
  );
}
