/** Name, tags as chips, size and disk of a machine; and a new disk of an image. */
import { NativeSelect, Stack, TagsInput, Text, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { InstanceType, Vm, VmChange } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { CallSample } from '../../parts/commands/call-sample.tsx';
import { Confirm, FormModal } from '../../parts/forms/dialog.tsx';
import { showDone } from '../../parts/notices.tsx';
import { sayCredits, sayWhole } from '../../parts/say.ts';
import { machineText } from '../../texts/machine-text.ts';
import { text } from '../../texts/text.ts';
import { imagesQuery, tagsOf, typesQuery, vmsQuery } from './queries.ts';

const words = machineText.changes;
const rebuildWords = machineText.rebuild;
const MAX_DISK_GB = 1024;

interface Fields {
  readonly name: string;
  readonly tags: string[];
  readonly instance_type: string;
  readonly disk_gb: string;
}

/** Only what differs: a machine that runs takes a name, and no size. */
function changeOf(vm: Vm, { name, tags, instance_type, disk_gb }: Fields): VmChange {
  const joined = tags.join(',');
  return {
    ...(name.trim() !== vm.name && { name }),
    ...(joined !== tagsOf(vm.tags).join(',') && { tags: joined }),
    ...(instance_type !== vm.instance_type && { instance_type }),
    ...(Number(disk_gb) !== vm.disk_gb && { disk_gb: Number(disk_gb) }),
  };
}

interface ChangeMachineProps {
  readonly vm: Vm;
  readonly onClose: () => void;
}

export function ChangeMachine({ vm, onClose }: ChangeMachineProps) {
  const types = useQuery(typesQuery);
  const { name, instance_type, disk_gb } = vm;
  const values: Fields = { name, tags: tagsOf(vm.tags), instance_type, disk_gb: String(disk_gb) };
  const form = useCloudForm({
    values,
    send: (fields) => cloud.changeVm(vm.vm_id, changeOf(vm, fields)),
    invalidates: [vmsQuery],
    onDone: (changed) => {
      showDone(words.done(changed.name));
      onClose();
    },
  });
  const isOff = vm.state === 'stopped' || vm.state === 'created';
  const change = changeOf(vm, form.values);
  return (
    <FormModal
      isOpen
      title={words.title(vm.name)}
      action={words.submit}
      form={form}
      isIncomplete={Object.keys(change).length === 0}
      onClose={onClose}
    >
      <TextInput
        label={words.name}
        description={words.nameLead}
        required
        withAsterisk={false}
        data-autofocus
        spellCheck={false}
        {...form.text('name')}
      />
      <TagsInput label={words.tags} description={words.tagsLead} {...form.of('tags')} />
      {!isOff && <Text size="sm">{words.stopFirst}</Text>}
      <NativeSelect
        label={words.size}
        description={words.sizeLead}
        data={(types.data ?? []).map(sizeOption)}
        disabled={!isOff}
        {...form.text('instance_type')}
      />
      <TextInput
        label={words.disk}
        description={words.diskLead}
        type="number"
        min={vm.disk_gb}
        max={Math.max(MAX_DISK_GB, vm.disk_gb)}
        disabled={!isOff}
        {...form.text('disk_gb')}
      />
      <CallSample operation="changeVm" args={[vm.vm_id, change]} />
    </FormModal>
  );
}

function sizeOption({ instance_type, vcpus, memory_mb, price_per_hour }: InstanceType) {
  const specs = words.specs(vcpus, sayWhole(memory_mb));
  const price = text.machines.perHour(sayCredits(price_per_hour));
  return { value: instance_type, label: words.option(instance_type, specs, price) };
}

/** For a machine that is off. */
export function RebuildMachine({ vm, onClose }: { vm: Vm; onClose: () => void }) {
  const images = useQuery(imagesQuery);
  const [image, setImage] = useState(vm.image);
  const rebuild = useMutation({
    mutationFn: () => cloud.rebuildVm(vm.vm_id, { image }),
    meta: { shown: true, invalidates: [vmsQuery] },
    onSuccess: () => {
      showDone(rebuildWords.done(vm.name));
      onClose();
    },
  });
  const fitting = (images.data ?? []).filter(({ min_disk_gb: need }) => need <= vm.disk_gb);
  return (
    <Confirm
      isOpen
      title={rebuildWords.title(vm.name)}
      action={rebuildWords.submit}
      typed={vm.name}
      isBusy={rebuild.isPending}
      error={rebuild.error}
      onConfirm={() => rebuild.mutate()}
      onClose={onClose}
    >
      <Stack>
        <Text size="sm">{rebuildWords.lead(vm.disk_gb)}</Text>
        <NativeSelect
          label={rebuildWords.image}
          value={image}
          data={fitting.map(({ image_id: value, name: label }) => ({ value, label }))}
          onChange={({ currentTarget }) => setImage(currentTarget.value)}
        />
        <CallSample operation="rebuildVm" args={[vm.vm_id, { image }]} />
      </Stack>
    </Confirm>
  );
}
