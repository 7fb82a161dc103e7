/** Restores the machine from a recovery point as a new machine. */
import { Button, Group, Stack, Text, TextInput, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { NewVm, Vm, VmPoint } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { CallSample } from '../../parts/commands/call-sample.tsx';
import { PointSelect, RecoveryPoints } from '../../parts/forms/recovery-points.tsx';
import { Refused } from '../../parts/forms/warning.tsx';
import { machineText } from '../../texts/machine-text.ts';
import { vmPointsQuery, vmsQuery } from './queries.ts';
import { Snapshots } from './snapshots.tsx';

const words = machineText.recovery;

export function RecoveryTab({ vm }: { vm: Vm }) {
  return (
    <Stack gap="xl">
      <Snapshots vm={vm} />
      <section>
        <Title order={2} mb="xs">
          {words.points}
        </Title>
        <RecoveryPoints query={useQuery(vmPointsQuery(vm.vm_id))} words={words}>
          {(points) => <RestoreForm vm={vm} points={points} />}
        </RecoveryPoints>
      </section>
    </Stack>
  );
}

function RestoreForm({ vm, points }: { vm: Vm; points: readonly VmPoint[] }) {
  const navigate = useNavigate();
  const { vm_id, instance_type } = vm;
  const bodyOf = ({ name, point_id }: { name: string; point_id: string }): NewVm => ({
    name,
    instance_type,
    from: { vm_id, point_id },
  });
  const form = useCloudForm({
    values: { name: `${vm.name}-then`, point_id: points[0]?.point_id ?? '' },
    send: (values) => cloud.createVm(bodyOf(values), { takesLong: true }),
    invalidates: [{ queryKey: vmsQuery.queryKey, exact: true }],
    onDone: (made) => navigate({ to: '/machines/$vm', params: { vm: made.vm_id } }),
  });
  return (
    <form onSubmit={form.submit}>
      <Stack maw={560}>
        <Text c="dimmed">{words.lead(instance_type)}</Text>
        <PointSelect points={points} words={words} {...form.text('point_id')} />
        <TextInput label={words.name} required spellCheck={false} {...form.text('name')} />
        <Refused {...form.refusal} />
        <Group>
          <Button type="submit" loading={form.isBusy}>
            {words.submit}
          </Button>
        </Group>
        <CallSample operation="createVm" args={[bodyOf(form.values)]} />
      </Stack>
    </form>
  );
}
