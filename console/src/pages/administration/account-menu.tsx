/** What an administrator does with one account. */
import { EllipsisHorizontalIcon } from '@heroicons/react/24/outline';
import { ActionIcon, Menu, NumberInput, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { AdminAccount } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { CallSample } from '../../parts/call-sample.tsx';
import { FormModal } from '../../parts/form-modal.tsx';
import { text } from '../../texts/text.ts';
import { AccountStatement } from './account-statement.tsx';
import { accountsQuery } from './queries.ts';
import { ShownKey } from './shown-key.tsx';
import { TermsForm } from './terms-form.tsx';

type Form = 'credits' | 'suspend' | 'statement';

interface FormProps {
  readonly account: AdminAccount;
  readonly isOpen: boolean;
  readonly onClose: () => void;
}

const { administration } = text;

export function AccountMenu({ account }: { account: AdminAccount }) {
  const [form, setForm] = useState<Form>();
  const queryClient = useQueryClient();
  const resume = useMutation({
    mutationFn: () => cloud.admin.accounts.resume(account.id),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: accountsQuery.queryKey }),
  });
  const showKey = useMutation({ mutationFn: () => cloud.admin.accounts.apiKey(account.id) });
  // An empty change changes nothing, and is answered with the terms that hold.
  const terms = useMutation({ mutationFn: () => cloud.admin.accounts.change(account.id, {}) });
  const shared = { account, onClose: () => setForm(undefined) };
  return (
    <>
      <Menu position="bottom-end" withinPortal>
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" aria-label={administration.actionsOf(account.username)}>
            <EllipsisHorizontalIcon width={20} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => setForm('credits')}>{administration.giveCredits}</Menu.Item>
          <Menu.Item onClick={() => terms.mutate()}>{administration.changeTerms}</Menu.Item>
          <Menu.Item onClick={() => setForm('statement')}>{administration.statement.open}</Menu.Item>
          <Menu.Item onClick={() => showKey.mutate()}>{administration.showKey}</Menu.Item>
          <Menu.Divider />
          {account.is_active ? (
            <Menu.Item color="var(--wrong)" onClick={() => setForm('suspend')}>
              {administration.suspend}
            </Menu.Item>
          ) : (
            <Menu.Item onClick={() => resume.mutate()}>{administration.resume}</Menu.Item>
          )}
        </Menu.Dropdown>
      </Menu>
      <CreditsForm {...shared} isOpen={form === 'credits'} />
      {terms.data !== undefined && (
        <TermsForm account={account} present={terms.data} onClose={() => terms.reset()} />
      )}
      <SuspendForm {...shared} isOpen={form === 'suspend'} />
      {form === 'statement' && <AccountStatement {...shared} />}
      <ShownKey made={showKey.data} onClose={() => showKey.reset()} />
    </>
  );
}

/** Sends a form, reads the accounts again and closes it. */
function useSending(send: () => Promise<unknown>, onClose: () => void) {
  const queryClient = useQueryClient();
  return useMutation({
    mutationFn: send,
    meta: { shown: true },
    onSuccess: async () => {
      onClose();
      await queryClient.invalidateQueries({ queryKey: accountsQuery.queryKey });
    },
  });
}

function CreditsForm({ account: { id, username }, isOpen, onClose }: FormProps) {
  const [amount, setAmount] = useState<number | string>(10);
  const [reason, setReason] = useState('');
  const body = { amount: Number(amount), reason };
  const send = useSending(() => cloud.admin.accounts.adjustCredits(id, body), onClose);
  return (
    <FormModal
      isOpen={isOpen}
      title={administration.creditsOf(username)}
      action={administration.giveCredits}
      isBusy={send.isPending}
      error={send.error}
      onSubmit={() => send.mutate()}
      onClose={onClose}
    >
      <NumberInput
        label={administration.amount}
        description={administration.amountLead}
        value={amount}
        decimalScale={6}
        onChange={setAmount}
      />
      <TextInput
        label={administration.reason}
        description={administration.reasonLead}
        value={reason}
        required
        withAsterisk={false}
        onChange={({ currentTarget }) => setReason(currentTarget.value)}
      />
      <CallSample
        call="POST /api/admin/accounts/{id}/credits"
        params={{ id: String(id) }}
        body={body}
        method="admin.accounts.adjustCredits"
        args={[id, body]}
      />
    </FormModal>
  );
}

function SuspendForm({ account: { id, username }, isOpen, onClose }: FormProps) {
  const [reason, setReason] = useState('');
  const send = useSending(() => cloud.admin.accounts.suspend(id, { reason }), onClose);
  return (
    <FormModal
      isOpen={isOpen}
      title={administration.suspendAsk(username)}
      action={administration.suspend}
      isBusy={send.isPending}
      error={send.error}
      onSubmit={() => send.mutate()}
      onClose={onClose}
    >
      <TextInput
        label={administration.reason}
        description={administration.suspendLead}
        value={reason}
        required
        withAsterisk={false}
        onChange={({ currentTarget }) => setReason(currentTarget.value)}
      />
      <CallSample
        call="POST /api/admin/accounts/{id}/suspend"
        params={{ id: String(id) }}
        body={{ reason }}
        method="admin.accounts.suspend"
        args={[id, { reason }]}
      />
    </FormModal>
  );
}
