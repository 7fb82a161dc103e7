/** Invitations: of one person, of a class by one link, or from a table. */

import {
  Badge,
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
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { CreatedInvitation, Invitation } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { CallSample } from '../../parts/commands/call-sample.tsx';
import { CodeLine } from '../../parts/commands/code.tsx';
import { Dialog, FormModal } from '../../parts/forms/dialog.tsx';
import { Loaded } from '../../parts/page.tsx';
import { sayCredits } from '../../parts/say.ts';
import { type Column, DataTable } from '../../parts/tables/data-table.tsx';
import { When } from '../../parts/tables/when.tsx';
import { text } from '../../texts/text.ts';
import { indexQuery } from '../sign-in/sign-in-pages.tsx';
import { invitationsQuery, plansQuery } from './queries.ts';

const { administration } = text;
const words = administration.invitations;
const DAY_SECONDS = 24 * 3600;

export function Invitations() {
  const invitations = useQuery(invitationsQuery);
  const [isInviting, setInviting] = useState(false);
  const index = useQuery(indexQuery).data;
  return (
    <Stack>
      <Group justify="space-between">
        <div>
          {index !== undefined && <Text title={words.policyLead}>{words.policy[index.registration]}</Text>}
          <Text c="dimmed">{words.lead}</Text>
          {index?.mail === false && <Text c="dimmed">{words.noMail}</Text>}
        </div>
        <Button onClick={() => setInviting(true)}>{words.invite}</Button>
      </Group>
      <Loaded query={invitations}>
        {(all) =>
          all.length === 0 ? (
            <Text c="dimmed">{words.none}</Text>
          ) : (
            <DataTable columns={COLUMNS} rows={all} keyOf={({ id }) => id} />
          )
        }
      </Loaded>
      {isInviting && <InviteForm onClose={() => setInviting(false)} />}
    </Stack>
  );
}

const COLUMNS: readonly Column<Invitation>[] = [
  { name: words.who, cell: (invitation) => <Who invitation={invitation} /> },
  { name: words.uses, isNumber: true, cell: ({ uses, max_uses }) => `${uses} / ${max_uses}` },
  { name: administration.plan, cell: ({ plan }) => plan },
  { name: administration.credits, isNumber: true, cell: ({ credits }) => sayCredits(credits) },
  { name: words.linkEnds, cell: ({ expires_at }) => <When at={expires_at} /> },
  { name: administration.actions, isActions: true, cell: (invitation) => <Revoke invitation={invitation} /> },
];

const nameOf = ({ username, email, label }: Invitation) => username ?? email ?? label;

function Who({ invitation }: { invitation: Invitation }) {
  const { state, label } = invitation;
  const name = nameOf(invitation);
  return (
    <>
      <Group gap="xs">
        {name === '' ? words.anybody : name}
        <Badge variant="light">{words.states[state]}</Badge>
      </Group>
      {label !== name && (
        <Text size="sm" c="dimmed">
          {label}
        </Text>
      )}
    </>
  );
}

function Revoke({ invitation }: { invitation: Invitation }) {
  const revoke = useMutation({
    mutationFn: () => cloud.adminRevokeInvitation(invitation.id),
    meta: { invalidates: [invitationsQuery] },
  });
  if (invitation.state !== 'open') return null;
  return (
    <Button
      variant="subtle"
      size="compact-sm"
      loading={revoke.isPending}
      aria-label={words.revokeOf(nameOf(invitation))}
      onClick={() => revoke.mutate()}
    >
      {words.revoke}
    </Button>
  );
}

function InviteForm({ onClose }: { onClose: () => void }) {
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
      <NumberInput label={words.days} min={1} max={365} allowDecimal={false} {...form.of('days')} />
      <TextInput
        label={words.accountEnds}
        description={words.accountEndsLead}
        placeholder="2027-07-31 22:00:00"
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
  readonly days: number | string;
  readonly account_expires_at: string;
}

/** Empty fields are left out. */
function bodyOf({ label, email, mail, max_uses, plan, credits, days, account_expires_at: end }: Typed) {
  return {
    ...(email !== '' && { email }),
    ...(mail && { mail }),
    ...(label !== '' && { label }),
    max_uses: Number(max_uses),
    plan,
    credits: Number(credits),
    expires_in: Number(days) * DAY_SECONDS,
    ...(end !== '' && { account_expires_at: end }),
  };
}

/** The links are shown this once. */
function Links({ made, onClose }: { made: readonly CreatedInvitation[]; onClose: () => void }) {
  const [first] = made;
  const isOne = made.length === 1 && first !== undefined;
  const lines = made.map((one) => `${nameOf(one)}\t${one.url}`).join('\n');
  const isMailed = made.every(({ url }) => url === null);
  return (
    <Dialog opened onClose={onClose} title={words.made(made.length)} size="lg">
      <Stack>
        <Text size="sm">{isMailed ? words.mailed(made.length) : isOne ? words.oneLead : words.manyLead}</Text>
        {!isMailed && (
          <CodeLine
            value={isOne ? (first.url ?? '') : lines}
            label={isOne ? administration.copyLink : words.copyLinks}
          />
        )}
      </Stack>
    </Dialog>
  );
}
