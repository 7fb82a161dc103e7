/** The plan of one account, and limits of its own. */
import { Select, Text } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { AccountTerms, AdminAccount } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { CallSample } from '../../parts/call-sample.tsx';
import { FormModal } from '../../parts/form-modal.tsx';
import { text } from '../../texts/text.ts';
import { accountsQuery, plansQuery } from './queries.ts';
import { QuotaFields } from './quota-fields.tsx';

const { administration } = text;

interface TermsFormProps {
  readonly account: AdminAccount;
  readonly present: AccountTerms;
  readonly onClose: () => void;
}

export function TermsForm({ account: { id, username }, present, onClose }: TermsFormProps) {
  const [plan, setPlan] = useState(present.plan);
  const [quotas, setQuotas] = useState(present.own_quotas);
  const plans = useQuery(plansQuery);
  const queryClient = useQueryClient();
  const terms = { plan, quotas };
  const save = useMutation({
    mutationFn: () => cloud.admin.accounts.change(id, terms),
    meta: { shown: true },
    onSuccess: async () => {
      onClose();
      await queryClient.invalidateQueries({ queryKey: accountsQuery.queryKey });
    },
  });
  return (
    <FormModal
      isOpen
      title={administration.termsOf(username)}
      action={administration.save}
      isBusy={save.isPending}
      error={save.error ?? plans.error}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <Select
        data-autofocus
        label={administration.plan}
        data={plans.data?.map(({ name }) => name) ?? [present.plan]}
        value={plan}
        allowDeselect={false}
        onChange={(chosen) => setPlan(chosen ?? present.plan)}
      />
      <Text size="sm" c="dimmed">
        {administration.ownLimitsLead}
      </Text>
      <QuotaFields quotas={quotas} placeholder={administration.asThePlan} onChange={setQuotas} />
      <CallSample
        call="PATCH /api/admin/accounts/{id}"
        params={{ id: String(id) }}
        body={terms}
        method="admin.accounts.change"
        args={[id, terms]}
      />
    </FormModal>
  );
}
