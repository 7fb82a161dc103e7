/**
 * The forms that create invitation links: for one person, a class or a table, and a new link for an
 * invitation.
 */

import {
  Button,
  FileInput,
  Group,
  NumberInput,
  SegmentedControl,
  Select,
  Stack,
  Switch,
  Text,
  TextInput,
} from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { CreatedInvitation, Invitation } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { CallSample } from '../../parts/commands/call-sample.tsx';
import { CodeLine } from '../../parts/commands/code.tsx';
import { saveText } from '../../parts/commands/copy.tsx';
import { Dialog, FormModal } from '../../parts/forms/dialog.tsx';
import { invitationsText } from '../../texts/invitations-text.ts';
import { manyAccountsText } from '../../texts/many-accounts-text.ts';
import { text } from '../../texts/text.ts';
import { indexQuery } from '../sign-in/sign-in-pages.tsx';
import { endOfDay } from './last-day.ts';
import { invitationsQuery, plansQuery } from './queries.ts';

const { administration } = text;
const words = invitationsText;
const DAY_SECONDS = 24 * 3600;

export function nameOf({ username, email, label }: Invitation): string {
  return username ?? email ?? label;
}

export function InviteForm({ onClose }: { onClose: () => void }) {
  const [way, setWay] = useState<string>('link');
  const plans = useQuery(plansQuery);
  const sendsMail = useQuery(indexQuery).data?.mail === true;
  const form = useCloudForm({
    values: {
      label: '',
      email: '',
      mail: false,
      max_uses: 1 as number | string,
      plan: 'free',
      credits: 0 as number | string,
      spend_cap: '' as number | string,
      days: 7 as number | string,
      account_expires_at: '',
      file: null as File | null,
    },
    send: async ({ file, ...values }): Promise<readonly CreatedInvitation[]> => {
      if (way === 'link') return [await cloud.adminCreateInvitation(bodyOf(values))];
      if (file === null) throw new Error(administration.chooseFile);
      const { label: _, max_uses: __, email: ___, ...terms } = bodyOf(values);
      const made = await cloud.adminImportInvitations({ csv: await file.text(), ...terms });
      return made.invitations;
    },
    invalidates: [invitationsQuery],
  });
  const { file: _, ...values } = form.values;
  if (form.made !== undefined) return <Links made={form.made} onClose={onClose} />;
  return (
    <FormModal isOpen title={words.invite} action={words.invite} form={form} onClose={onClose}>
      <SegmentedControl
        aria-label={words.way}
        value={way}
        onChange={setWay}
        data={[
          { value: 'link', label: words.byLink },
          { value: 'table', label: words.byTable },
        ]}
      />
      {way === 'link' ? (
        <>
          {sendsMail && <TextInput type="email" label={words.email} {...form.text('email')} />}
          <TextInput label={words.label} description={words.labelLead} {...form.text('label')} />
          <NumberInput
            label={words.places}
            description={words.placesLead}
            min={1}
            max={1000}
            allowDecimal={false}
            {...form.of('max_uses')}
          />
        </>
      ) : (
        <FileInput
          label={words.table}
          description={words.tableLead}
          placeholder={administration.chooseFile}
          accept=".csv,text/csv"
          {...form.of('file')}
        />
      )}
      <Select
        label={administration.plan}
        allowDeselect={false}
        data={(plans.data ?? []).map(({ name }) => name)}
        {...form.of('plan')}
      />
      <NumberInput label={words.credits} min={0} decimalScale={6} {...form.of('credits')} />
      <NumberInput
        label={words.cap}
        description={words.capLead}
        min={0}
        decimalScale={6}
        {...form.of('spend_cap')}
      />
      <NumberInput label={words.days} min={1} max={365} allowDecimal={false} {...form.of('days')} />
      <TextInput
        type="date"
        label={manyAccountsText.lastDay}
        description={manyAccountsText.lastDayLead}
        {...form.text('account_expires_at')}
      />
      {sendsMail && <Switch label={words.mail} description={words.mailLead} {...form.check('mail')} />}
      {way === 'link' && <CallSample operation="adminCreateInvitation" args={[bodyOf(values)]} />}
    </FormModal>
  );
}

interface Typed {
  readonly email: string;
  readonly mail: boolean;
  readonly label: string;
  readonly max_uses: number | string;
  readonly plan: string;
  readonly credits: number | string;
  readonly spend_cap: number | string;
  readonly days: number | string;
  readonly account_expires_at: string;
}

/** Empty fields are left out. */
function bodyOf({ label, email, mail, max_uses, plan, credits, days, ...typed }: Typed) {
  const { spend_cap: cap, account_expires_at: day } = typed;
  const end = endOfDay(day);
  return {
    ...(email !== '' && { email }),
    ...(mail && { mail }),
    ...(label !== '' && { label }),
    max_uses: Number(max_uses),
    plan,
    credits: Number(credits),
    ...(cap !== '' && { spend_cap: Number(cap) }),
    expires_in: Number(days) * DAY_SECONDS,
    ...(end !== null && { account_expires_at: end }),
  };
}

interface LinksProps {
  readonly made: readonly CreatedInvitation[];
  readonly title?: string;
  readonly onClose: () => void;
}

const quoted = (text: string) => (/[",;\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** For a spreadsheet or a mail merge. */
function tableOf(made: readonly CreatedInvitation[]) {
  const rows = made.map(({ username, email, label, url }) => [username, email, label, url]);
  const lines = [['username', 'email', 'label', 'link'], ...rows].map((row) =>
    row.map((cell) => quoted(cell ?? '')).join(','),
  );
  return { name: 'invitations.csv', type: 'text/csv', content: `${lines.join('\r\n')}\r\n` };
}

/** The links are shown this once. */
function Links({ made, title = words.made(made.length), onClose }: LinksProps) {
  const [first] = made;
  const isOne = made.length === 1 && first !== undefined;
  const lines = made.map((one) => `${nameOf(one)}\t${one.url}`).join('\n');
  const isMailed = made.every(({ url }) => url === null);
  return (
    <Dialog opened onClose={onClose} title={title} size="lg">
      <Stack>
        <Text size="sm">{isMailed ? words.mailed(made.length) : isOne ? words.oneLead : words.manyLead}</Text>
        {!isMailed && (
          <CodeLine
            value={isOne ? (first.url ?? '') : lines}
            label={isOne ? administration.copyLink : words.copyLinks}
          />
        )}
        {!isMailed && !isOne && (
          <Group justify="flex-end">
            <Button variant="default" onClick={() => saveText(tableOf(made))}>
              {words.saveLinks}
            </Button>
          </Group>
        )}
      </Stack>
    </Dialog>
  );
}

export function RenewForm({ invitation, onClose }: { invitation: Invitation; onClose: () => void }) {
  const sendsMail = useQuery(indexQuery).data?.mail === true;
  const { id, email, max_uses: uses } = invitation;
  const form = useCloudForm({
    values: { email: email ?? '', days: 7 as number | string, mail: sendsMail && invitation.mailed },
    send: (values) => cloud.adminRenewInvitation(id, renewalOf(invitation, values)),
    invalidates: [invitationsQuery],
  });
  if (form.made !== undefined) return <Links made={[form.made]} title={words.renewed} onClose={onClose} />;
  const title = words.renewOf(nameOf(invitation));
  return (
    <FormModal isOpen title={title} action={words.renew} form={form} onClose={onClose}>
      <Text size="sm">{words.renewLead}</Text>
      {uses === 1 && <TextInput data-autofocus type="email" label={words.email} {...form.text('email')} />}
      <NumberInput label={words.days} min={1} max={365} allowDecimal={false} {...form.of('days')} />
      {sendsMail && uses === 1 && (
        <Switch label={words.mail} description={words.mailLead} {...form.check('mail')} />
      )}
      <CallSample operation="adminRenewInvitation" args={[id, renewalOf(invitation, form.values)]} />
    </FormModal>
  );
}

function renewalOf(
  { email: former }: Invitation,
  { email, mail, days }: Pick<Typed, 'email' | 'mail' | 'days'>,
) {
  return {
    ...(email !== '' && email !== former && { email }),
    ...(mail && { mail }),
    expires_in: Number(days) * DAY_SECONDS,
  };
}
