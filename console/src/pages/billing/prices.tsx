/** Current and upcoming prices. */

import { Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Result } from '../../../../sdk/index.ts';
import { Loaded } from '../../parts/page.tsx';
import { sayCredits, sayPrice } from '../../parts/say.ts';
import { type Column, DataTable } from '../../parts/tables/data-table.tsx';
import { When } from '../../parts/tables/when.tsx';
import { text } from '../../texts/text.ts';
import { EngineTitle } from '../databases/engine-title.tsx';
import { pricesQuery } from './queries.ts';

type Price = Result<'listPrices'>[number];

const { resources } = text.billing;

const COLUMNS: readonly Column<Price>[] = [
  {
    name: text.billing.resource,
    cell: ({ resource_type: type }) => resources[type as keyof typeof resources],
  },
  { name: text.billing.meter, cell: ({ meter }) => text.billing.meters[meter] },
  {
    name: text.billing.variant,
    cell: ({ instance_type: type, engine }) => type ?? (engine && <EngineTitle engine={engine} />),
  },
  { name: text.billing.price, isNumber: true, cell: (price) => <PriceCell {...price} /> },
  { name: text.billing.unit, cell: ({ unit }) => unit },
];

function PriceCell({ price, upcoming }: Price) {
  return (
    <>
      {sayPrice(price)}
      {upcoming.map((next) => (
        <Text key={next.effective_from} size="sm" c="dimmed">
          {text.billing.upcoming} <When at={next.effective_from} />: {sayCredits(next.price)}
        </Text>
      ))}
    </>
  );
}

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
        <DataTable
          columns={COLUMNS}
          rows={all}
          keyOf={(price) => `${price.meter} ${price.instance_type} ${price.engine}`}
        />
      )}
    </Loaded>
  );
}
