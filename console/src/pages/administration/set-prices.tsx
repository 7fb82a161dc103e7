/** Prices that were set, and those that will hold from an hour to come. */

import { Button, Group, NumberInput, Select, Stack, Table, Text, TextInput, Title } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { NewPrice } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { CallSample } from '../../parts/call-sample.tsx';
import { FormModal } from '../../parts/dialog.tsx';
import { ListTable } from '../../parts/list-table.tsx';
import { Loaded } from '../../parts/page.tsx';
import { sayCredits } from '../../parts/say.ts';
import { When } from '../../parts/when.tsx';
import { text } from '../../texts/text.ts';
import { PriceTable } from '../billing/prices.tsx';
import { setPricesQuery } from './queries.ts';

const { administration, billing } = text;
type Meter = NewPrice['meter'];
const METERS = Object.keys(administration.meters) as Meter[];

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
            <ListTable
              heads={[
                { name: billing.meter },
                { name: billing.variant },
                { name: administration.plan },
                { name: billing.price, isNumber: true },
                { name: billing.unit },
                { name: billing.upcoming },
              ]}
            >
              {all.map((price) => (
                <Table.Tr
                  key={[
                    price.meter,
                    price.instance_type,
                    price.engine,
                    price.plan,
                    price.effective_from,
                  ].join()}
                >
                  <Table.Td>{administration.meters[price.meter]}</Table.Td>
                  <Table.Td>{price.instance_type ?? price.engine}</Table.Td>
                  <Table.Td>{price.plan}</Table.Td>
                  <Table.Td ta="right">{sayCredits(price.price)}</Table.Td>
                  <Table.Td>{price.unit}</Table.Td>
                  <Table.Td>
                    <When at={price.effective_from} />
                  </Table.Td>
                </Table.Tr>
              ))}
            </ListTable>
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

function PriceForm({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const [meter, setMeter] = useState<Meter>('storage');
  const [variant, setVariant] = useState('');
  const [plan, setPlan] = useState('');
  const [amount, setAmount] = useState<number | string>(0);
  const hasVariant = meter !== 'storage' && meter !== 'egress';
  const key = meter === 'database.storage' ? 'engine' : 'instance_type';
  const price: NewPrice = {
    meter,
    price: Number(amount),
    ...(hasVariant && variant !== '' ? { [key]: variant } : {}),
    ...(plan === '' ? {} : { plan }),
  };
  const set = useMutation({
    mutationFn: () => cloud.adminSetPrice(price),
    meta: { shown: true, invalidates: [setPricesQuery] },
    onSuccess: () => {
      onClose();
    },
  });
  return (
    <FormModal
      isOpen={isOpen}
      title={administration.setPrice}
      action={administration.setPrice}
      isBusy={set.isPending}
      error={set.error}
      onSubmit={() => set.mutate()}
      onClose={onClose}
    >
      <Select
        label={billing.meter}
        data={METERS.map((value) => ({ value, label: administration.meters[value] }))}
        value={meter}
        allowDeselect={false}
        onChange={(chosen) => setMeter((chosen ?? 'storage') as Meter)}
      />
      {hasVariant && (
        <TextInput
          label={meter === 'database.storage' ? administration.engine : administration.instanceType}
          description={administration.variantLead}
          value={variant}
          spellCheck={false}
          onChange={({ currentTarget }) => setVariant(currentTarget.value)}
        />
      )}
      <TextInput
        label={administration.plan}
        description={administration.planLead}
        value={plan}
        spellCheck={false}
        onChange={({ currentTarget }) => setPlan(currentTarget.value)}
      />
      <NumberInput
        label={billing.unitPrice}
        description={administration.priceLead}
        min={0}
        max={1000}
        decimalScale={9}
        value={amount}
        onChange={setAmount}
      />
      <CallSample operation="adminSetPrice" args={[price]} />
    </FormModal>
  );
}
