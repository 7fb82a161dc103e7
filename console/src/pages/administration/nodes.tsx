/** The nodes of the cluster: state, load and actions. */

import { Button, Group, Stack, Text } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Node } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { Confirm } from '../../parts/forms/dialog.tsx';
import { Loaded } from '../../parts/page.tsx';
import { sayCount } from '../../parts/say.ts';
import { type Column, DataTable } from '../../parts/tables/data-table.tsx';
import { StateBadge, type Tone } from '../../parts/tables/state-badge.tsx';
import { When } from '../../parts/tables/when.tsx';
import { text } from '../../texts/text.ts';
import { isCluster, nodesQuery } from './queries.ts';

const { administration } = text;
const TONES: Readonly<Record<Node['state'], Tone>> = {
  up: 'good',
  draining: 'moving',
  left: 'quiet',
  lost: 'bad',
};

export function Nodes() {
  const nodes = useQuery(nodesQuery);
  return (
    <Loaded query={nodes}>
      {(all) => (
        <Stack>
          <Text c="dimmed">{isCluster(all) ? administration.nodesLead : administration.noCluster}</Text>
          <DataTable
            columns={isCluster(all) ? [...COLUMNS, ACTIONS] : COLUMNS}
            rows={all}
            keyOf={({ node_id: id }) => id}
          />
        </Stack>
      )}
    </Loaded>
  );
}

const COLUMNS: readonly Column<Node>[] = [
  {
    name: administration.node,
    title: ({ node_id: id }) => id,
    cell: ({ name, is_this: isThis, url }) => (
      <>
        {name} {isThis && <span className="soft">({administration.thisNode})</span>}
        <Text className="mono" size="xs" c="dimmed">
          {url}
        </Text>
      </>
    ),
  },
  {
    name: administration.state,
    cell: ({ state }) => <StateBadge tone={TONES[state]} word={administration.nodeStates[state]} />,
  },
  { name: administration.role, cell: ({ role }) => administration.nodeRoles[role] },
  { name: administration.version, cell: ({ version }) => version },
  { name: administration.nodeSince, cell: ({ since }) => <When at={since} /> },
  {
    name: administration.beat,
    isNumber: true,
    cell: ({ beat_age_seconds: age }) => administration.beatAge(sayCount(Math.round(age))),
  },
  {
    name: administration.leases,
    isNumber: true,
    title: ({ leases }) => leases.join('\n'),
    cell: ({ leases }) => sayCount(leases.length),
  },
  {
    name: administration.load,
    cell: ({ load, state }) =>
      load === null || state === 'left' || state === 'lost'
        ? '–'
        : administration.loadOf(sayCount(Math.round(load.cpu)), sayCount(Math.round(load.memory))),
  },
];

const ACTIONS: Column<Node> = {
  name: administration.actions,
  isActions: true,
  cell: (node) => <NodeActions node={node} />,
};

type Question = 'drain' | 'forget';

const QUESTIONS = {
  drain: {
    title: administration.drainAsk,
    lead: administration.drainLead,
    send: (id: string) => cloud.adminDrainNode(id),
  },
  forget: {
    title: administration.forgetAsk,
    lead: administration.forgetLead,
    send: (id: string) => cloud.adminForgetNode(id),
  },
};

function NodeActions({ node: { node_id: id, name, state } }: { node: Node }) {
  const [isAsking, setAsking] = useState(false);
  const question: Question = state === 'left' || state === 'lost' ? 'forget' : 'drain';
  const { title, lead, send } = QUESTIONS[question];
  const close = () => setAsking(false);
  const change = useMutation({
    mutationFn: () => send(id),
    meta: { shown: true, invalidates: [nodesQuery] },
    onSuccess: close,
  });
  const resume = useMutation({
    mutationFn: () => cloud.adminResumeNode(id),
    meta: { invalidates: [nodesQuery] },
  });
  return (
    <>
      <Group gap="xs" wrap="nowrap" justify="flex-end">
        {state === 'draining' ? (
          <Button
            size="compact-sm"
            variant="default"
            loading={resume.isPending}
            onClick={() => resume.mutate()}
          >
            {administration.endDrain}
          </Button>
        ) : (
          <Button size="compact-sm" variant="default" onClick={() => setAsking(true)}>
            {administration[question]}
          </Button>
        )}
      </Group>
      <Confirm
        isOpen={isAsking}
        title={title(name)}
        action={administration[question]}
        isBusy={change.isPending}
        error={change.error}
        onConfirm={() => change.mutate()}
        onClose={close}
      >
        {lead}
      </Confirm>
    </>
  );
}
