/** Invitations: of one person, of a class by one link, or from a table. */

import { Badge, Button, Group, Stack, Text } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { Invitation } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { Loaded } from '../../parts/page.tsx';
import { sayCredits } from '../../parts/say.ts';
import type { Column } from '../../parts/tables/data-table.tsx';
import { ListTable } from '../../parts/tables/list-table.tsx';
import { When } from '../../parts/tables/when.tsx';
import { useIsAdmin } from '../../queries.ts';
import { invitationsText } from '../../texts/invitations-text.ts';
import { text } from '../../texts/text.ts';
import { indexQuery } from '../sign-in/sign-in-pages.tsx';
import { InviteForm, nameOf, RenewForm } from './invite-form.tsx';
import { invitationsQuery } from './queries.ts';

const { administration } = text;
const words = invitationsText;

export function Invitations() {
  const invitations = useQuery(invitationsQuery);
  const [isInviting, setInviting] = useState(false);
  const index = useQuery(indexQuery).data;
  const mayChange = useIsAdmin();
  return (
    <Stack>
      <Group justify="space-between">
        <div>
          {index !== undefined && <Text title={words.policyLead}>{words.policy[index.registration]}</Text>}
          <Text c="dimmed">{words.lead}</Text>
          {index?.mail === false && <Text c="dimmed">{words.noMail}</Text>}
        </div>
        {mayChange && <Button onClick={() => setInviting(true)}>{words.invite}</Button>}
      </Group>
      <Loaded query={invitations}>
        {(all) =>
          all.length === 0 ? (
            <Text c="dimmed">{words.none}</Text>
          ) : (
            <InvitationTable invitations={all} mayChange={mayChange} />
          )
        }
      </Loaded>
      {isInviting && <InviteForm onClose={() => setInviting(false)} />}
    </Stack>
  );
}

interface InvitationTableProps {
  readonly invitations: readonly Invitation[];
  readonly mayChange: boolean;
}

function InvitationTable({ invitations, mayChange }: InvitationTableProps) {
  const { tab: _, month: __, ...view } = useSearch({ from: '/shell/administration' });
  const navigate = useNavigate({ from: '/administration' });
  // Shown outside the row: the row may leave the list when the invitation changes, and would take the link
  // along.
  const [renewed, setRenewed] = useState<Invitation>();
  const actions: Column<Invitation> = {
    name: administration.actions,
    isActions: true,
    cell: (invitation) => <Actions invitation={invitation} onRenew={() => setRenewed(invitation)} />,
  };
  return (
    <>
      <ListTable
        columns={mayChange ? [...COLUMNS, actions] : COLUMNS}
        rows={invitations}
        keyOf={({ id }) => id}
        nameOf={nameOf}
        textOf={({ username, email, label, plan, state }) =>
          [username, email, label, plan, words.states[state]].join(' ')
        }
        view={view}
        onView={(next) => navigate({ search: { tab: 'invitations', ...next }, replace: true })}
      />
      {renewed !== undefined && <RenewForm invitation={renewed} onClose={() => setRenewed(undefined)} />}
    </>
  );
}

const COLUMNS: readonly Column<Invitation>[] = [
  { name: words.who, id: 'who', value: nameOf, cell: (invitation) => <Who invitation={invitation} /> },
  {
    name: administration.state,
    id: 'state',
    value: ({ state }) => words.states[state],
    cell: ({ state }) => <Badge variant="light">{words.states[state]}</Badge>,
  },
  {
    name: words.uses,
    id: 'uses',
    isNumber: true,
    value: ({ uses }) => uses,
    cell: ({ uses, max_uses }) => `${uses} / ${max_uses}`,
  },
  { name: administration.plan, id: 'plan', value: ({ plan }) => plan, cell: ({ plan }) => plan },
  { name: administration.credits, isNumber: true, cell: ({ credits }) => sayCredits(credits) },
  {
    name: words.linkEnds,
    id: 'end',
    value: ({ expires_at: at }) => at,
    cell: ({ expires_at }) => <When at={expires_at} />,
  },
];

function Who({ invitation }: { invitation: Invitation }) {
  const name = nameOf(invitation);
  const more = [invitation.email, invitation.label].filter((each) => each && each !== name);
  return (
    <>
      {name === '' ? words.anybody : name}
      {more.map((each) => (
        <Text key={each} size="sm" c="dimmed">
          {each}
        </Text>
      ))}
    </>
  );
}

/** A used or revoked invitation cannot be changed. */
function Actions({ invitation, onRenew }: { invitation: Invitation; onRenew: () => void }) {
  const { state } = invitation;
  if (state === 'used' || state === 'revoked') return null;
  return (
    <Group gap="xs" justify="flex-end" wrap="nowrap">
      <Button
        variant="subtle"
        size="compact-sm"
        aria-label={words.renewOf(nameOf(invitation))}
        onClick={onRenew}
      >
        {words.renew}
      </Button>
      <Revoke invitation={invitation} />
    </Group>
  );
}

function Revoke({ invitation }: { invitation: Invitation }) {
  const revoke = useMutation({
    mutationFn: () => cloud.adminRevokeInvitation(invitation.id),
    meta: { invalidates: [invitationsQuery] },
  });
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
