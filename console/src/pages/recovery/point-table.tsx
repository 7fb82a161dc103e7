/** The recovery points with state, components and actions. */

import { EllipsisHorizontalIcon } from '@heroicons/react/24/outline';
import { ActionIcon, Button, Group, Menu, Progress, Stack, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { RecoveryPoint } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { CodeLine } from '../../parts/commands/code.tsx';
import { Confirm, Dialog } from '../../parts/forms/dialog.tsx';
import { lazyPart } from '../../parts/lazy-part.tsx';
import { showDone } from '../../parts/notices.tsx';
import { sayBytes, sayCount, shellWord } from '../../parts/say.ts';
import { type Column, DataTable } from '../../parts/tables/data-table.tsx';
import { Facts } from '../../parts/tables/facts.tsx';
import { StateBadge, type Tone } from '../../parts/tables/state-badge.tsx';
import { When } from '../../parts/tables/when.tsx';
import { recoveryText } from '../../texts/pages/recovery-text.ts';
import { scheduleText } from '../../texts/pages/schedule-text.ts';
import { RECOVERY } from './queries.ts';

const TONES: Readonly<Record<RecoveryPoint['state'], Tone>> = {
  creating: 'moving',
  complete: 'good',
  verified: 'good',
  drilled: 'good',
  partial: 'bad',
  failed: 'bad',
  damaged: 'bad',
  cancelled: 'quiet',
  deleting: 'quiet',
};
const words = scheduleText.drill;
const AccountForm = lazyPart(() => import('./account-form.tsx').then((made) => made.AccountForm));
const SOUND: readonly RecoveryPoint['state'][] = ['complete', 'verified', 'drilled', 'partial'];

export function PointTable({ points, isBusy }: { points: readonly RecoveryPoint[]; isBusy: boolean }) {
  const { point: openId } = useSearch({ from: '/shell/recovery' });
  const navigate = useNavigate({ from: '/recovery' });
  const setOpen = (point?: string) =>
    void navigate({ search: point === undefined ? {} : { point }, replace: true, resetScroll: false });
  const columns: readonly Column<RecoveryPoint>[] = [
    { name: recoveryText.keeps, cell: (point) => <Made point={point} /> },
    { name: recoveryText.state, cell: (point) => <State point={point} /> },
    { name: recoveryText.verified, cell: ({ verified_at: at }) => <When at={at} /> },
    { name: recoveryText.stored, isNumber: true, cell: ({ stored_bytes: bytes }) => sayBytes(bytes) },
    {
      name: recoveryText.actions,
      isActions: true,
      cell: (point) => (
        <Group justify="flex-end" wrap="nowrap" gap="xs">
          <Button size="compact-sm" variant="default" onClick={() => setOpen(point.point_id)}>
            {recoveryText.details}
          </Button>
          <PointMenu point={point} />
        </Group>
      ),
    },
  ];
  const open = points.find(({ point_id: id }) => id === openId);
  return (
    <>
      <DataTable columns={columns} rows={points} keyOf={({ point_id: id }) => id} isBusy={isBusy} />
      <Dialog opened={open !== undefined} onClose={() => setOpen()} title={recoveryText.point} size="xl">
        {open !== undefined && <Details point={open} />}
      </Dialog>
    </>
  );
}

function Made({ point }: { point: RecoveryPoint }) {
  return (
    <>
      <When at={point.created_at} />
      <Text className="mono" size="xs" c="dimmed" style={{ whiteSpace: 'nowrap' }}>
        {point.point_id}
      </Text>
    </>
  );
}

function State({ point }: { point: RecoveryPoint }) {
  const { state, state_reason: reason, percent, verifying_percent: verifying } = point;
  const shown = verifying ?? (state === 'creating' ? percent : null);
  return (
    <Stack gap={4} align="flex-start">
      <StateBadge
        tone={verifying === null ? TONES[state] : 'moving'}
        word={verifying === null ? recoveryText.states[state] : recoveryText.verifying(sayCount(verifying))}
      />
      {shown !== null && (
        <Progress value={shown} size="sm" w="100%" aria-label={recoveryText.taken(sayCount(shown))} />
      )}
      {reason !== null && <Text size="xs">{reason}</Text>}
      {point.gaps.length > 0 && (
        <Text size="xs">{recoveryText.lacks(point.gaps.map(({ component }) => component).join(', '))}</Text>
      )}
      {point.deletes_at !== null && (
        <Text size="xs" c="dimmed">
          {recoveryText.goneAt} <When at={point.deletes_at} />
        </Text>
      )}
    </Stack>
  );
}

function Details({ point }: { point: RecoveryPoint }) {
  const contents = Object.entries(point.contents).filter(([, count]) => count > 0);
  const restore = `cloudlet recovery restore --from ${shellWord(point.target)} --point ${point.point_id} --to NEW_DIR`;
  return (
    <Stack pb="sm">
      <Facts
        facts={[
          ...contents.map(([name, count]) => ({ name: sayPart(name), value: sayCount(count) })),
          { name: recoveryText.size, value: sayBytes(point.size_bytes) },
        ]}
      />
      <div>
        <Text fw={550}>{recoveryText.target}</Text>
        <span className="mono">{point.target}</span>
      </div>
      <Parts title={recoveryText.gaps} parts={point.gaps} />
      <Parts
        title={recoveryText.damage}
        parts={point.damage.map(({ file, problem, needed_by: of }) => ({
          component: of,
          reason: `${file}: ${problem}`,
        }))}
      />
      <DrillReport point={point} />
      {SOUND.includes(point.state) && (
        <div>
          <Text fw={550}>{recoveryText.restore}</Text>
          <Text size="sm" c="dimmed" mb="xs">
            {recoveryText.restoreLead}
          </Text>
          <CodeLine value={restore} label={recoveryText.copyRestore} />
        </div>
      )}
      {SOUND.includes(point.state) && <AccountForm point={point.point_id} />}
    </Stack>
  );
}

type Check = NonNullable<RecoveryPoint['drill']>['checks'][number];

const CHECKS: readonly Column<Check>[] = [
  { name: words.what, cell: ({ name }) => name },
  { name: words.result, cell: ({ state }) => words.results[state] ?? state },
  { name: words.found, cell: ({ detail }) => detail },
];

/** The comparisons of the last drill, and its duration. */
function DrillReport({ point: { drill, drilling } }: { point: RecoveryPoint }) {
  if (drilling !== null) return <Text size="sm">{words.running(drilling)}</Text>;
  if (drill === null) return null;
  const { result, seconds, started_at: at, reason, checks } = drill;
  return (
    <div>
      <Text fw={550}>{words.title}</Text>
      <Text size="sm">
        <When at={at} /> {words.took(words.results[result] ?? result, sayCount(seconds))}
      </Text>
      {reason !== null && <Text size="sm">{reason}</Text>}
      {checks.length > 0 && <DataTable columns={CHECKS} rows={checks} keyOf={({ name }) => name} />}
    </div>
  );
}

const { parts } = recoveryText;
const sayPart = (name: string) => (name in parts ? parts[name as keyof typeof parts] : name);

type Part = RecoveryPoint['gaps'][number];

function Parts({ title, parts }: { title: string; parts: readonly Part[] }) {
  if (parts.length === 0) return null;
  return (
    <div>
      <Text fw={550}>{title}</Text>
      {parts.map(({ component, reason }) => (
        <Text key={`${component} ${reason}`} size="sm">
          <span className="mono">{component}</span>: {reason}
        </Text>
      ))}
    </div>
  );
}

function PointMenu({
  point: { point_id: id, state, drilling, verifying_percent: verifying },
}: {
  point: RecoveryPoint;
}) {
  const [isAsking, setAsking] = useState(false);
  const meta = { invalidates: [RECOVERY] };
  const verify = useMutation({ mutationFn: () => cloud.verifyRecoveryPoint(id, { wait: 0 }), meta });
  const drill = useMutation({ mutationFn: () => cloud.drillRecoveryPoint(id, {}, { wait: 0 }), meta });
  const cancel = useMutation({ mutationFn: () => cloud.cancelRecoveryPoint(id), meta });
  const undelete = useMutation({ mutationFn: () => cloud.undeleteRecoveryPoint(id), meta });
  const remove = useMutation({
    mutationFn: () => cloud.deleteRecoveryPoint(id),
    meta: { ...meta, shown: true },
    onSuccess: () => {
      setAsking(false);
      showDone(recoveryText.deleted, () => undelete.mutate());
    },
  });
  return (
    <>
      <Menu position="bottom-end" withinPortal>
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" aria-label={recoveryText.actionsOf(id)}>
            <EllipsisHorizontalIcon width={20} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {state === 'creating' && (
            <Menu.Item onClick={() => cancel.mutate()}>{recoveryText.cancel}</Menu.Item>
          )}
          {state === 'deleting' && (
            <Menu.Item onClick={() => undelete.mutate()}>{recoveryText.undelete}</Menu.Item>
          )}
          {[...SOUND, 'damaged'].includes(state) && verifying === null && (
            <Menu.Item onClick={() => verify.mutate()}>{recoveryText.verify}</Menu.Item>
          )}
          {[...SOUND, 'damaged'].includes(state) && drilling === null && (
            <Menu.Item onClick={() => drill.mutate()}>{words.begin}</Menu.Item>
          )}
          {state !== 'creating' && state !== 'deleting' && (
            <Menu.Item color="var(--wrong)" onClick={() => setAsking(true)}>
              {recoveryText.delete}
            </Menu.Item>
          )}
        </Menu.Dropdown>
      </Menu>
      <Confirm
        isOpen={isAsking}
        title={recoveryText.deleteAsk(id)}
        action={recoveryText.delete}
        isBusy={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate()}
        onClose={() => setAsking(false)}
      >
        {recoveryText.deleteLead}
      </Confirm>
    </>
  );
}
