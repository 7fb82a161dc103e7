/** Plans: monthly credits and quotas of their accounts. */

import { Button, Group, NumberInput, Stack, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Plan, Quotas } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { CallSample } from '../../parts/commands/call-sample.tsx';
import { Confirm, FormModal } from '../../parts/forms/dialog.tsx';
import { Loaded } from '../../parts/page.tsx';
import { sayBytes, sayCount, sayCredits } from '../../parts/say.ts';
import { type Column, DataTable } from '../../parts/tables/data-table.tsx';
import { text } from '../../texts/text.ts';
import { plansQuery } from './queries.ts';

const { administration, billing } = text;
const BOUNDS = Object.keys(text.billing.quotas) as (keyof Quotas)[];
const NO_PLAN = { name: '', monthly_credits: 0, quotas: {} as Quotas };

export function Plans() {
  const plans = useQuery(plansQuery);
  const [edited, setEdited] = useState<typeof NO_PLAN & { isNew: boolean }>();
  return (
    <Stack>
      <Group justify="flex-end">
        <Button onClick={() => setEdited({ ...NO_PLAN, isNew: true })}>{administration.createPlan}</Button>
      </Group>
      <Loaded query={plans}>
        {(all) => (
          <DataTable
            columns={[
              ...COLUMNS,
              {
                name: administration.actions,
                isActions: true,
                cell: (plan) => (
                  <PlanActions plan={plan} onEdit={() => setEdited({ ...plan, isNew: false })} />
                ),
              },
            ]}
            rows={all}
            keyOf={({ name }) => name}
          />
        )}
      </Loaded>
      {edited !== undefined && <PlanForm plan={edited} onClose={() => setEdited(undefined)} />}
    </Stack>
  );
}

function sayBound(bound: keyof Quotas, most: number | null | undefined): string {
  if (most === null || most === undefined) return administration.unlimited;
  return bound === 'storage_bytes' ? sayBytes(most) : sayCount(most);
}

const COLUMNS: readonly Column<Plan>[] = [
  { name: administration.plan, cell: ({ name }) => name },
  {
    name: administration.monthlyCredits,
    isNumber: true,
    cell: ({ monthly_credits: credits }) => sayCredits(credits),
  },
  ...BOUNDS.map((bound) => ({
    name: billing.quotas[bound],
    isNumber: true,
    cell: ({ quotas }: Plan) => sayBound(bound, quotas[bound]),
  })),
  { name: administration.accounts, isNumber: true, cell: ({ account_count: count }) => sayCount(count) },
];

function PlanActions({ plan, onEdit }: { plan: Plan; onEdit: () => void }) {
  const [isAsking, setAsking] = useState(false);
  const remove = useMutation({
    mutationFn: () => cloud.adminDeletePlan(plan.name),
    meta: { shown: true, invalidates: [plansQuery] },
  });
  return (
    <>
      <Group gap="xs" wrap="nowrap" justify="flex-end">
        <Button size="compact-sm" variant="default" onClick={onEdit}>
          {administration.edit}
        </Button>
        <Button size="compact-sm" variant="default" onClick={() => setAsking(true)}>
          {administration.delete}
        </Button>
      </Group>
      <Confirm
        isOpen={isAsking}
        title={administration.deleteAsk(plan.name)}
        action={administration.delete}
        isBusy={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate()}
        onClose={() => setAsking(false)}
      >
        {administration.deletePlanLead}
      </Confirm>
    </>
  );
}

/** Typed credits as a number. */
const planOf = <Plan extends { monthly_credits: number | string }>(plan: Plan) => ({
  ...plan,
  monthly_credits: Number(plan.monthly_credits),
});

function PlanForm({ plan, onClose }: { plan: typeof NO_PLAN & { isNew: boolean }; onClose: () => void }) {
  const form = useCloudForm({
    values: {
      name: plan.name,
      monthly_credits: plan.monthly_credits as number | string,
      quotas: plan.quotas,
    },
    send: (values) => {
      const { name, ...terms } = planOf(values);
      return plan.isNew ? cloud.adminCreatePlan({ name, ...terms }) : cloud.adminChangePlan(name, terms);
    },
    invalidates: [plansQuery],
    onDone: onClose,
  });
  const { name, ...terms } = planOf(form.values);
  return (
    <FormModal
      isOpen
      title={plan.isNew ? administration.createPlan : plan.name}
      action={plan.isNew ? administration.createPlan : administration.save}
      form={form}
      onClose={onClose}
    >
      {plan.isNew && (
        <TextInput
          data-autofocus
          label={administration.plan}
          required
          withAsterisk={false}
          spellCheck={false}
          {...form.text('name')}
        />
      )}
      <NumberInput
        label={administration.monthlyCredits}
        min={0}
        decimalScale={6}
        {...form.of('monthly_credits')}
      />
      <QuotaFields
        quotas={form.values.quotas}
        placeholder={administration.unlimited}
        onChange={(quotas) => form.set({ quotas })}
      />
      {plan.isNew ? (
        <CallSample operation="adminCreatePlan" args={[{ name, ...terms }]} />
      ) : (
        <CallSample operation="adminChangePlan" args={[name, terms]} />
      )}
    </FormModal>
  );
}

/** Quotas of a plan or an account; an empty field means unlimited. */

interface QuotaFieldsProps {
  readonly quotas: Quotas;
  /** The limit that applies to an empty field. */
  readonly placeholder: string;
  readonly onChange: (quotas: Quotas) => void;
}

export function QuotaFields({ quotas, placeholder, onChange }: QuotaFieldsProps) {
  const change = (bound: keyof Quotas, value: number | string) => {
    const { [bound]: _, ...others } = quotas;
    onChange(value === '' ? others : { ...others, [bound]: Number(value) });
  };
  return BOUNDS.map((bound) => (
    <NumberInput
      key={bound}
      label={text.billing.quotas[bound]}
      placeholder={quotas[bound] === null ? text.administration.unlimited : placeholder}
      min={0}
      allowDecimal={false}
      thousandSeparator=","
      value={quotas[bound] ?? ''}
      onChange={(value) => change(bound, value)}
    />
  ));
}
