/** Prices that were set, and scheduled ones. */

import { Button, Group, NumberInput, Select, Stack, Text, TextInput, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { NewPrice, Result } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { CallSample } from '../../parts/commands/call-sample.tsx';
import { FormModal } from '../../parts/forms/dialog.tsx';
import { Loaded } from '../../parts/page.tsx';
import { sayCredits } from '../../parts/say.ts';
import { type Column, DataTable } from '../../parts/tables/data-table.tsx';
import { When } from '../../parts/tables/when.tsx';
import { text } from '../../texts/text.ts';
import { PriceTable } from '../billing/prices.tsx';
import { setPricesQuery } from './queries.ts';

const { administration, billing } = text;
type Meter = NewPrice['meter'];
type SetPrice = Result<'adminListPrices'>[number];
const METERS = Object.keys(administration.meters) as Meter[];

const COLUMNS: readonly Column<SetPrice>[] = [
  { name: billing.meter, cell: ({ meter }) => administration.meters[meter] },
  { name: billing.variant, cell: ({ instance_type: type, engine }) => type ?? engine },
  { name: administration.plan, cell: ({ plan }) => plan },
  { name: billing.price, isNumber: true, cell: ({ price }) => sayCredits(price) },
  { name: billing.unit, cell: ({ unit }) => unit },
  { name: billing.upcoming, cell: ({ effective_from: at }) => <When at={at} /> },
];

export function SetPrices() {
  const prices = useQuery(setPricesQuery);
  const [isSetting, setSetting] = useState(false);
  return (
    <Stack>
      <Group justify="space-between">
        <Text c="dimmed">{billing.pricesLead}</Text>
        <Button onClick={() => setSetting(true)}>{administration.setPrice}</Button>
      </Group>
      <Loaded query={prices}>
        {(all) =>
          all.length === 0 ? (
            <Text c="dimmed">{administration.noPrices}</Text>
          ) : (
            <DataTable
              columns={COLUMNS}
              rows={all}
              keyOf={(price) =>
                [price.meter, price.instance_type, price.engine, price.plan, price.effective_from].join()
              }
            />
          )
        }
      </Loaded>
      <Title order={2} mt="md">
        {administration.inForce}
      </Title>
      <PriceTable />
      <PriceForm isOpen={isSetting} onClose={() => setSetting(false)} />
    </Stack>
  );
}

/** The kind of variant of a meter; storage and egress have none. */
function variantOf(meter: Meter): 'engine' | 'instance_type' | undefined {
  if (meter === 'storage' || meter === 'egress') return undefined;
  return meter === 'database.storage' ? 'engine' : 'instance_type';
}

interface PriceFields {
  readonly meter: Meter;
  readonly variant: string;
  readonly plan: string;
  readonly price: number | string;
}

function priceOf({ meter, variant, plan, price }: PriceFields): NewPrice {
  const key = variantOf(meter);
  return {
    meter,
    price: Number(price),
    ...(key === undefined || variant === '' ? {} : { [key]: variant }),
    ...(plan === '' ? {} : { plan }),
  };
}

function PriceForm({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const form = useCloudForm({
    values: { meter: 'storage' as Meter, variant: '', plan: '', price: 0 as number | string },
    send: (values) => cloud.adminSetPrice(priceOf(values)),
    invalidates: [setPricesQuery],
    onDone: onClose,
  });
  const { meter } = form.values;
  const variant = variantOf(meter);
  return (
    <FormModal
      isOpen={isOpen}
      title={administration.setPrice}
      action={administration.setPrice}
      form={form}
      onClose={onClose}
    >
      <Select
        label={billing.meter}
        data={METERS.map((value) => ({ value, label: administration.meters[value] }))}
        allowDeselect={false}
        {...form.of('meter')}
      />
      {variant !== undefined && (
        <TextInput
          label={variant === 'engine' ? administration.engine : administration.instanceType}
          description={administration.variantLead}
          spellCheck={false}
          {...form.text('variant')}
          error={form.errorOf(variant)}
        />
      )}
      <TextInput
        label={administration.plan}
        description={administration.planLead}
        spellCheck={false}
        {...form.text('plan')}
      />
      <NumberInput
        label={billing.unitPrice}
        description={administration.priceLead}
        min={0}
        max={1000}
        decimalScale={9}
        {...form.of('price')}
      />
      <CallSample operation="adminSetPrice" args={[priceOf(form.values)]} />
    </FormModal>
  );
}
