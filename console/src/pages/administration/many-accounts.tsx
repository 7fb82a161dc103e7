/** One action for many accounts at once, with the outcome for each: a refusal does not stop the others. */
import { ArrowDownTrayIcon } from '@heroicons/react/24/outline';
import {
  ActionIcon,
  Button,
  Group,
  NumberInput,
  Progress,
  Select,
  Stack,
  Text,
  TextInput,
} from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useRef, useState } from 'react';
import type { AdminAccount } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useDownloads } from '../../parts/commands/download.ts';
import { Dialog } from '../../parts/forms/dialog.tsx';
import { Warning } from '../../parts/forms/warning.tsx';
import { OutcomeList } from '../../parts/many/outcome-list.tsx';
import { type Outcomes, useMany } from '../../parts/many/use-many.ts';
import { exportTarget } from '../../parts/take-along.tsx';
import { listsText as lists } from '../../texts/lists-text.ts';
import { manyAccountsText } from '../../texts/many-accounts-text.ts';
import { spendText } from '../../texts/spend-text.ts';
import { text } from '../../texts/text.ts';
import { accountsQuery, plansQuery } from './queries.ts';

export const MANY_ACTIONS = ['plan', 'credits', 'cap', 'suspend', 'resume', 'remove'] as const;
export type ManyAction = (typeof MANY_ACTIONS)[number];

const { administration } = text;
const words = manyAccountsText;

interface Values {
  readonly plan: string;
  readonly amount: number | string;
  /** Empty: no cap. */
  readonly cap: number | string;
  readonly reason: string;
}

/** Identifies one adjustment of one account, so that a retry books it once. */
const transferId = (run: string, { id }: AdminAccount) => `${run}:${id}`;

function send(action: ManyAction, account: AdminAccount, given: Values & { readonly run: string }) {
  const { plan, amount, cap, reason, run } = given;
  const { id } = account;
  if (action === 'plan') return cloud.adminChangeAccount(id, { plan });
  if (action === 'cap') return cloud.adminChangeAccount(id, { spend_cap: cap === '' ? null : Number(cap) });
  if (action === 'resume') return letIn(account);
  if (action === 'suspend') return cloud.adminSuspendAccount(id, { reason });
  if (action === 'remove') return cloud.adminRemoveAccount(id, { reason });
  const transfer_id = transferId(run, account);
  return cloud.adminAdjustCredits(id, { amount: Number(amount), reason, transfer_id });
}

/** Undoes a removal first, then the suspension that preceded it. */
async function letIn({ id, is_active: isActive, removed_at: removedAt }: AdminAccount) {
  if (isActive) return;
  const kept = removedAt === null ? undefined : await cloud.adminKeepAccount(id);
  if (kept?.is_active !== true) await cloud.adminResumeAccount(id);
}

interface ManyAccountsProps {
  readonly action: ManyAction;
  readonly accounts: readonly AdminAccount[];
  /** Called with the accounts that are not done. */
  readonly onClose: (left: readonly number[]) => void;
}

export function ManyAccounts({ action, accounts, onClose }: ManyAccountsProps) {
  const [values, setValues] = useState<Values>({ plan: '', amount: 10, cap: '', reason: '' });
  const queries = useQueryClient();
  const run = useRef(crypto.randomUUID().slice(0, 18));
  const { outcomes, isBusy, done, failed, start, stop } = useMany({
    items: accounts,
    keyOf: ({ id }) => id,
    send: (account, given: Values) => send(action, account, { ...given, run: run.current }),
    onEnd: () => queries.invalidateQueries({ queryKey: accountsQuery.queryKey }),
  });
  const isBegun = outcomes.size > 0;
  const close = () => {
    stop();
    onClose(accounts.filter(({ id }) => outcomes.get(id) !== 'done').map(({ id }) => id));
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!isBusy) void start(values);
  };
  return (
    <Dialog opened onClose={close} title={words.titles[action](accounts.length)} size="lg">
      <form onSubmit={submit}>
        <Stack>
          {!isBegun && <Fields action={action} values={values} onChange={setValues} />}
          {isBegun && (
            <Progress value={(outcomes.size * 100) / accounts.length} aria-label={lists.progress} />
          )}
          <Text size="sm" role="status">
            {isBegun ? lists.outcome(done, failed, accounts.length) : ''}
          </Text>
          <Outcome accounts={accounts} outcomes={outcomes} hasExports={action === 'remove'} />
          <Group justify="flex-end">
            <Button variant="default" onClick={close}>
              {isBegun ? lists.close : text.shell.cancel}
            </Button>
            {done < accounts.length && (
              <Button
                type="submit"
                loading={isBusy}
                color={action === 'remove' || action === 'suspend' ? 'red.9' : 'petrol'}
                disabled={action === 'plan' && values.plan === ''}
              >
                {isBegun ? lists.again : labelOf(action, accounts.length, values)}
              </Button>
            )}
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}

function labelOf(action: ManyAction, count: number, { cap }: Values): string {
  return action === 'cap' && cap === '' ? words.uncap(count) : words.actions[action](count);
}

interface FieldsProps {
  readonly action: ManyAction;
  readonly values: Values;
  readonly onChange: (values: Values) => void;
}

function Fields({ action, values, onChange }: FieldsProps) {
  const plans = useQuery({ ...plansQuery, enabled: action === 'plan' });
  const set = (change: Partial<Values>) => onChange({ ...values, ...change });
  if (action === 'plan')
    return (
      <Select
        data-autofocus
        label={administration.plan}
        data={plans.data?.map(({ name }) => name) ?? []}
        value={values.plan}
        onChange={(plan) => set({ plan: plan ?? '' })}
        allowDeselect={false}
      />
    );
  if (action === 'cap')
    return (
      <NumberInput
        data-autofocus
        label={spendText.cap}
        description={words.capLead}
        min={0}
        decimalScale={6}
        value={values.cap}
        onChange={(cap) => set({ cap })}
      />
    );
  if (action === 'resume') return <Text size="sm">{words.resumeLead}</Text>;
  const leads = {
    credits: administration.reasonLead,
    suspend: administration.suspendLead,
    remove: administration.removeLead,
  };
  return (
    <>
      {action === 'credits' && (
        <NumberInput
          label={administration.amount}
          description={administration.amountLead}
          decimalScale={6}
          value={values.amount}
          onChange={(amount) => set({ amount })}
        />
      )}
      {action === 'remove' && <Warning title={words.exportFirst}>{words.exportFirstLead}</Warning>}
      <TextInput
        label={administration.reason}
        description={leads[action]}
        required
        withAsterisk={false}
        value={values.reason}
        onChange={({ currentTarget }) => set({ reason: currentTarget.value })}
      />
    </>
  );
}

interface OutcomeProps {
  readonly accounts: readonly AdminAccount[];
  readonly outcomes: Outcomes;
  readonly hasExports: boolean;
}

/** A line for each account, with its export before a removal. */
function Outcome({ accounts, outcomes, hasExports }: OutcomeProps) {
  const download = useDownloads();
  const exportButton = ({ id, username }: AdminAccount) => (
    <ActionIcon
      variant="subtle"
      color="gray"
      aria-label={words.exportOf(username)}
      onClick={() => download.mutate(async () => exportTarget(id, false))}
    >
      <ArrowDownTrayIcon width={18} aria-hidden />
    </ActionIcon>
  );
  return (
    <OutcomeList
      label={administration.accounts}
      items={accounts}
      keyOf={({ id }) => id}
      nameOf={({ username }) => username}
      outcomes={outcomes}
      {...(hasExports && { before: exportButton })}
    />
  );
}
