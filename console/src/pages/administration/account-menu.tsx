/** The menu of one account: credits, plan, statement, API key, suspension. */

import { EllipsisHorizontalIcon } from '@heroicons/react/24/outline';
import { ActionIcon, Menu, NumberInput, Select, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Account, AccountTerms, AdminAccount } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { CallSample } from '../../parts/call-sample.tsx';
import { CodeLine } from '../../parts/code.tsx';
import { Dialog, FormModal } from '../../parts/dialog.tsx';
import { Figures } from '../../parts/facts.tsx';
import { Loaded } from '../../parts/page.tsx';
import { sayCredits } from '../../parts/say.ts';
import { text } from '../../texts/text.ts';
import { EntryTable } from '../billing/entry-table.tsx';
import { MonthSelect } from '../billing/month-select.tsx';
import { thisMonth } from '../billing/queries.ts';
import { QuotaFields } from './plans.tsx';
import { accountsQuery, plansQuery, statementQuery } from './queries.ts';

type Form = 'credits' | 'suspend' | 'statement';

interface FormProps {
  readonly account: AdminAccount;
  readonly isOpen: boolean;
  readonly onClose: () => void;
}

const { administration } = text;

export function AccountMenu({ account }: { account: AdminAccount }) {
  const [form, setForm] = useState<Form>();
  const resume = useMutation({
    mutationFn: () => cloud.adminResumeAccount(account.id),
    meta: { invalidates: [accountsQuery] },
  });
  const showKey = useMutation({ mutationFn: () => cloud.adminShowApiKey(account.id) });
  // An empty change changes nothing, and is answered with the terms that hold.
  const terms = useMutation({ mutationFn: () => cloud.adminChangeAccount(account.id, {}) });
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
  return useMutation({
    mutationFn: send,
    meta: { shown: true, invalidates: [accountsQuery] },
    onSuccess: () => {
      onClose();
    },
  });
}

function CreditsForm({ account: { id, username }, isOpen, onClose }: FormProps) {
  const [amount, setAmount] = useState<number | string>(10);
  const [reason, setReason] = useState('');
  const body = { amount: Number(amount), reason };
  const send = useSending(() => cloud.adminAdjustCredits(id, body), onClose);
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
      <CallSample operation="adminAdjustCredits" args={[id, body]} />
    </FormModal>
  );
}

function SuspendForm({ account: { id, username }, isOpen, onClose }: FormProps) {
  const [reason, setReason] = useState('');
  const send = useSending(() => cloud.adminSuspendAccount(id, { reason }), onClose);
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
      <CallSample operation="adminSuspendAccount" args={[id, { reason }]} />
    </FormModal>
  );
}

/** Ledger entries of one account in a month. */
const words = text.administration.statement;

function AccountStatement({ account, onClose }: { account: AdminAccount; onClose: () => void }) {
  const [month, setMonth] = useState(thisMonth);
  const statement = useQuery(statementQuery(account.id, month));
  return (
    <Dialog opened onClose={onClose} title={words.of(account.username)} size="xl">
      <Stack pb="sm">
        <MonthSelect value={month} onChange={setMonth} />
        <Loaded query={statement}>
          {({ opening_balance: opening, closing_balance: closing, entries }) => (
            <>
              <Figures
                figures={[
                  { name: words.opening, value: sayCredits(opening) },
                  { name: words.closing, value: sayCredits(closing) },
                ]}
              />
              {entries.length === 0 ? (
                <Text c="dimmed">{words.none}</Text>
              ) : (
                <EntryTable entries={entries.toReversed()} />
              )}
            </>
          )}
        </Loaded>
      </Stack>
    </Dialog>
  );
}

/** The plan of one account, and limits of its own. */
interface TermsFormProps {
  readonly account: AdminAccount;
  readonly present: AccountTerms;
  readonly onClose: () => void;
}

function TermsForm({ account: { id, username }, present, onClose }: TermsFormProps) {
  const [plan, setPlan] = useState(present.plan);
  const [quotas, setQuotas] = useState(present.own_quotas);
  const plans = useQuery(plansQuery);
  const terms = { plan, quotas };
  const save = useMutation({
    mutationFn: () => cloud.adminChangeAccount(id, terms),
    meta: { shown: true, invalidates: [accountsQuery] },
    onSuccess: () => {
      onClose();
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
      <CallSample operation="adminChangeAccount" args={[id, terms]} />
    </FormModal>
  );
}

/** The API key of an account, to be handed over. */

interface ShownKeyProps {
  /** Nothing is shown without it. */
  readonly made: Pick<Account, 'username' | 'api_key'> | undefined;
  readonly onClose: () => void;
}

export function ShownKey({ made, onClose }: ShownKeyProps) {
  return (
    <Dialog opened={typeof made?.api_key === 'string'} onClose={onClose} title={administration.apiKey}>
      <Stack>
        <Text size="sm">{administration.apiKeyLead(made?.username ?? '')}</Text>
        <CodeLine value={made?.api_key ?? ''} label={administration.copyKey} />
      </Stack>
    </Dialog>
  );
}
