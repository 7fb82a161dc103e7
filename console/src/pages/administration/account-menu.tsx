/** The menu of one account: credits, plan, statement, API key, reset link, suspension. */

import { Menu, NumberInput, Select, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { type ReactElement, type ReactNode, useState } from 'react';
import type { Account, AccountTerms, AdminAccount, ResetLink } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { CallSample } from '../../parts/commands/call-sample.tsx';
import { CodeLine } from '../../parts/commands/code.tsx';
import { Dialog, FormModal } from '../../parts/forms/dialog.tsx';
import { Refused } from '../../parts/forms/warning.tsx';
import { showDone } from '../../parts/notices.tsx';
import { Loaded } from '../../parts/page.tsx';
import { RightsDialog } from '../../parts/rights.tsx';
import { sayCredits } from '../../parts/say.ts';
import { Figures } from '../../parts/tables/facts.tsx';
import { RowMenu, type RowMenuState } from '../../parts/tables/row-menu.tsx';
import { When } from '../../parts/tables/when.tsx';
import { TakeAlong } from '../../parts/take-along.tsx';
import { useIsAdmin } from '../../queries.ts';
import { manyAccountsText } from '../../texts/many-accounts-text.ts';
import { text } from '../../texts/text.ts';
import { LedgerTable, lineOf } from '../billing/entry-table.tsx';
import { MonthSelect } from '../billing/month-select.tsx';
import { thisMonth } from '../billing/queries.ts';
import { indexQuery } from '../sign-in/sign-in-pages.tsx';
import { AccountForm } from './account-form.tsx';
import { QuotaFields } from './plans.tsx';
import { accountsQuery, plansQuery, rightsQuery, statementQuery } from './queries.ts';

type Form = 'account' | 'credits' | 'suspend' | 'export' | 'remove' | 'rights' | 'statement';

interface FormProps {
  readonly account: AdminAccount;
  readonly onClose: () => void;
}

const { administration } = text;

export function AccountMenu({ account }: { account: AdminAccount }) {
  return (
    <RowMenu label={administration.actionsOf(account.username)}>
      {(menu, target) => <Items account={account} menu={menu} target={target} />}
    </RowMenu>
  );
}

interface ItemsProps {
  readonly account: AdminAccount;
  readonly menu: RowMenuState;
  readonly target: ReactElement;
}

function Items({ account, menu, target }: ItemsProps) {
  const [form, setForm] = useState<Form>();
  const showKey = useMutation({ mutationFn: () => cloud.adminShowApiKey(account.id) });
  const resetLink = useMutation({ mutationFn: () => cloud.adminCreateResetLink(account.id) });
  const mailLink = useMutation({
    mutationFn: () => cloud.adminMailResetLink(account.id),
    onSuccess: ({ mailed_to }) => showDone(administration.mailedTo(mailed_to)),
  });
  const mayChange = useIsAdmin();
  const sendsMail = useQuery(indexQuery).data?.mail === true;
  // An empty change has no effect, and returns the current terms.
  const terms = useMutation({ mutationFn: () => cloud.adminChangeAccount(account.id, {}) });
  const shared = { account, onClose: () => setForm(undefined) };
  return (
    <>
      <Menu position="bottom-end" {...menu}>
        <Menu.Target>{target}</Menu.Target>
        <Menu.Dropdown>
          {mayChange && (
            <Menu.Item onClick={() => setForm('account')}>{administration.person.open}</Menu.Item>
          )}
          {mayChange && (
            <Menu.Item onClick={() => setForm('credits')}>{administration.giveCredits}</Menu.Item>
          )}
          {mayChange && <Menu.Item onClick={() => terms.mutate()}>{administration.changeTerms}</Menu.Item>}
          <Menu.Item onClick={() => setForm('statement')}>{administration.statement.open}</Menu.Item>
          <Menu.Item onClick={() => setForm('rights')}>{text.account.rights.show}</Menu.Item>
          {mayChange && (
            <>
              <Menu.Item onClick={() => setForm('export')}>{administration.export}</Menu.Item>
              <Menu.Item onClick={() => showKey.mutate()}>{administration.showKey}</Menu.Item>
              {account.is_active && (
                <Menu.Item onClick={() => resetLink.mutate()}>{administration.resetLink}</Menu.Item>
              )}
              {account.is_active && sendsMail && account.email_confirmed && (
                <Menu.Item onClick={() => mailLink.mutate()}>{administration.mailResetLink}</Menu.Item>
              )}
              <Menu.Divider />
              <EndItems account={account} onForm={setForm} />
            </>
          )}
        </Menu.Dropdown>
      </Menu>
      {form === 'account' && <AccountForm {...shared} />}
      {form === 'credits' && <CreditsForm {...shared} />}
      {terms.data !== undefined && (
        <TermsForm account={account} present={terms.data} onClose={() => terms.reset()} />
      )}
      {form === 'suspend' && <SuspendForm {...shared} />}
      {form === 'rights' && <AccountRights {...shared} />}
      {form === 'export' && <ExportDialog {...shared} />}
      {form === 'remove' && <RemoveForm {...shared} />}
      {form === 'statement' && <AccountStatement {...shared} />}
      {showKey.data !== undefined && <ShownKey made={showKey.data} onClose={() => showKey.reset()} />}
      {resetLink.data !== undefined && (
        <ShownLink username={account.username} made={resetLink.data} onClose={() => resetLink.reset()} />
      )}
    </>
  );
}

interface EndItemsProps {
  readonly account: AdminAccount;
  readonly onForm: (form: Form) => void;
}

/** Suspension and removal, and undoing them. */
function EndItems({ account: { id, is_active: isActive, removed_at: removedAt }, onForm }: EndItemsProps) {
  const meta = { invalidates: [accountsQuery] };
  const resume = useMutation({ mutationFn: () => cloud.adminResumeAccount(id), meta });
  const keep = useMutation({ mutationFn: () => cloud.adminKeepAccount(id), meta });
  if (removedAt !== null) return <Menu.Item onClick={() => keep.mutate()}>{administration.keep}</Menu.Item>;
  return (
    <>
      {isActive ? (
        <Menu.Item color="var(--wrong)" onClick={() => onForm('suspend')}>
          {administration.suspend}
        </Menu.Item>
      ) : (
        <Menu.Item onClick={() => resume.mutate()}>{administration.resume}</Menu.Item>
      )}
      <Menu.Item color="var(--wrong)" onClick={() => onForm('remove')}>
        {administration.remove}
      </Menu.Item>
    </>
  );
}

function CreditsForm({ account: { id, username }, onClose }: FormProps) {
  const form = useCloudForm({
    values: { amount: 10 as number | string, reason: '' },
    send: (values) => cloud.adminAdjustCredits(id, { ...values, amount: Number(values.amount) }),
    invalidates: [accountsQuery],
    onDone: onClose,
  });
  const { amount, reason } = form.values;
  return (
    <FormModal
      isOpen
      title={administration.creditsOf(username)}
      action={administration.giveCredits}
      form={form}
      onClose={onClose}
    >
      <NumberInput
        label={administration.amount}
        description={administration.amountLead}
        decimalScale={6}
        {...form.of('amount')}
      />
      <TextInput
        label={administration.reason}
        description={administration.reasonLead}
        required
        withAsterisk={false}
        {...form.text('reason')}
      />
      <CallSample operation="adminAdjustCredits" args={[id, { amount: Number(amount), reason }]} />
    </FormModal>
  );
}

interface ReasonFormProps extends FormProps {
  readonly words: { readonly title: string; readonly action: string; readonly lead: string };
  readonly operation: 'adminSuspendAccount' | 'adminRemoveAccount';
  readonly children?: ReactNode;
}

/** Asks for a reason before it changes the account. */
function ReasonForm({ account: { id }, onClose, words, operation, children }: ReasonFormProps) {
  const form = useCloudForm({
    values: { reason: '' },
    send: (values) => cloud[operation](id, values),
    invalidates: [accountsQuery],
    onDone: onClose,
  });
  return (
    <FormModal isOpen title={words.title} action={words.action} form={form} onClose={onClose}>
      <TextInput
        label={administration.reason}
        description={words.lead}
        required
        withAsterisk={false}
        {...form.text('reason')}
      />
      {children}
      <CallSample operation={operation} args={[id, form.values]} />
    </FormModal>
  );
}

function SuspendForm(props: FormProps) {
  const { suspend: action, suspendLead: lead } = administration;
  const title = administration.suspendAsk(props.account.username);
  return <ReasonForm {...props} words={{ title, action, lead }} operation="adminSuspendAccount" />;
}

function RemoveForm(props: FormProps) {
  const { remove: action, removeLead: lead } = administration;
  const title = administration.removeAsk(props.account.username);
  return (
    <ReasonForm {...props} words={{ title, action, lead }} operation="adminRemoveAccount">
      <Stack gap="xs">
        <Text size="sm">{manyAccountsText.exportFirst}</Text>
        <TakeAlong id={props.account.id} />
      </Stack>
    </ReasonForm>
  );
}

function ExportDialog({ account: { id, username }, onClose }: FormProps) {
  return (
    <Dialog opened onClose={onClose} title={administration.exportOf(username)}>
      <Stack>
        <Text size="sm">{administration.exportLead}</Text>
        <TakeAlong id={id} />
        <CallSample operation="adminExportAccount" args={[id]} />
      </Stack>
    </Dialog>
  );
}

function AccountRights({ account: { id, username }, onClose }: FormProps) {
  const rights = useQuery(rightsQuery(id));
  return <RightsDialog title={text.account.rights.of(username)} rights={rights} onClose={onClose} />;
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
                <LedgerTable lines={entries.toReversed().map(lineOf)} />
              )}
            </>
          )}
        </Loaded>
      </Stack>
    </Dialog>
  );
}

/** One account's plan and own limits. */
interface TermsFormProps {
  readonly account: AdminAccount;
  readonly present: AccountTerms;
  readonly onClose: () => void;
}

function TermsForm({ account: { id, username }, present, onClose }: TermsFormProps) {
  const plans = useQuery(plansQuery);
  const form = useCloudForm({
    values: { plan: present.plan, quotas: present.own_quotas },
    send: (terms) => cloud.adminChangeAccount(id, terms),
    invalidates: [accountsQuery],
    onDone: onClose,
  });
  return (
    <FormModal
      isOpen
      title={administration.termsOf(username)}
      action={administration.save}
      form={form}
      onClose={onClose}
    >
      <Refused error={plans.error} />
      <Select
        data-autofocus
        label={administration.plan}
        data={plans.data?.map(({ name }) => name) ?? [present.plan]}
        allowDeselect={false}
        {...form.of('plan')}
      />
      <Text size="sm" c="dimmed">
        {administration.ownLimitsLead}
      </Text>
      <QuotaFields
        quotas={form.values.quotas}
        placeholder={administration.asThePlan}
        onChange={(quotas) => form.set({ quotas })}
      />
      <CallSample operation="adminChangeAccount" args={[id, form.values]} />
    </FormModal>
  );
}

/** The API key of an account, to be handed over. */

interface ShownKeyProps {
  /** Without it, nothing is shown. */
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

interface ShownLinkProps {
  readonly username: string;
  /** Without it, nothing is shown. */
  readonly made: ResetLink | undefined;
  readonly onClose: () => void;
}

/** The link that sets a new password, to be handed over. */
function ShownLink({ username, made, onClose }: ShownLinkProps) {
  return (
    <Dialog opened={made !== undefined} onClose={onClose} title={administration.resetLinkOf(username)}>
      <Stack>
        <Text size="sm">{administration.resetLinkLead(username)}</Text>
        <CodeLine value={made?.url ?? ''} label={administration.copyLink} />
        <Text size="sm">
          {administration.expires} <When at={made?.expires_at ?? null} />
        </Text>
        <Text size="sm">{administration.resetLinkAfter}</Text>
      </Stack>
    </Dialog>
  );
}
