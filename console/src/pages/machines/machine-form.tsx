/** Fields of the form of a new machine, its call, and the fields that many leave as they are. */

import { AdjustmentsHorizontalIcon } from '@heroicons/react/24/outline';
import { Checkbox, SimpleGrid, Stack, Textarea, TextInput } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { NewVm } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { Fold } from '../../parts/fold.tsx';
import { fieldError } from '../../parts/refusal.ts';
import { text } from '../../texts/text.ts';
import { startUnseen } from './power.ts';
import { vmQuery, vmsQuery } from './queries.ts';

const KEYS_PLACE = 'cloudlet.ssh-keys';

export interface MachineFields {
  readonly name: string;
  readonly image: string;
  readonly instance_type: string;
  readonly keys: string;
  readonly user_data: string;
  readonly ports: string;
  readonly tags: string;
  readonly isStarted: boolean;
  readonly isRemembered: boolean;
}

const EMPTY: MachineFields = {
  name: '',
  image: 'tiny',
  instance_type: 't2.micro',
  keys: '',
  user_data: '',
  ports: '',
  tags: '',
  isStarted: true,
  isRemembered: true,
};

const linesOf = (keys: string) => keys.split('\n').flatMap((line) => line.trim() || []);
const numbersOf = (ports: string) =>
  ports.split(/[\s,]+/).flatMap((word) => (word === '' ? [] : Number(word)));

export function arePorts(ports: string): boolean {
  return numbersOf(ports).every((port) => Number.isInteger(port) && port > 0 && port < 65_536);
}

/** Only what was filled in. */
export function bodyOf(fields: MachineFields): NewVm {
  const { name, image, instance_type, user_data, tags } = fields;
  const ssh_keys = linesOf(fields.keys);
  const ports = arePorts(fields.ports) ? numbersOf(fields.ports) : [];
  return {
    name,
    instance_type,
    image,
    ...(ssh_keys.length === 0 ? {} : { ssh_keys }),
    ...(user_data.trim() === '' ? {} : { user_data }),
    ...(ports.length === 0 ? {} : { ports }),
    ...(tags.trim() === '' ? {} : { tags: tags.trim() }),
  };
}

export function useMachineForm() {
  const [keptKeys, keepKeys] = useLocalStorage({
    key: KEYS_PLACE,
    defaultValue: '',
    getInitialValueInEffect: false,
  });
  const [fields, setFields] = useState<MachineFields>({ ...EMPTY, keys: keptKeys });
  const queryClient = useQueryClient();
  const navigate = useNavigate();
  const create = useMutation({
    mutationFn: () => cloud.createVm(bodyOf(fields)),
    // A start reads them again itself.
    meta: { shown: true, invalidates: fields.isStarted ? [] : [vmsQuery] },
    onSuccess: async (vm) => {
      keepKeys(fields.isRemembered ? fields.keys : '');
      const { queryKey } = vmQuery(vm.vm_id);
      queryClient.setQueryData(queryKey, fields.isStarted ? { ...vm, state: 'starting' } : vm);
      // Its page shows what becomes of the start.
      if (fields.isStarted) void startUnseen(queryClient, vm.vm_id);
      await navigate({
        to: '/machines/$vm',
        params: { vm: vm.vm_id },
        search: fields.isStarted ? { tab: 'console' } : {},
      });
    },
  });
  const set = (change: Partial<MachineFields>) => setFields((before) => ({ ...before, ...change }));
  return { fields, set, create };
}

const words = text.machines.form;

/** Fields in the folded part. */
const FOLDED = ['user_data', 'ports', 'tags'];

interface MoreProps {
  readonly fields: MachineFields;
  readonly set: (change: Partial<MachineFields>) => void;
  readonly error: unknown;
}

export function MachineMore({ fields, set, error }: MoreProps) {
  return (
    <Stack gap="lg">
      <Stack gap="xs">
        <Textarea
          label={words.keys}
          description={fields.keys.trim() === '' ? `${words.keysLead} ${words.noKeys}` : words.keysLead}
          placeholder="ssh-ed25519 AAAA…"
          value={fields.keys}
          error={fieldError(error, 'ssh_keys')}
          autosize
          minRows={2}
          maxRows={8}
          spellCheck={false}
          classNames={{ input: 'mono' }}
          onChange={({ currentTarget }) => set({ keys: currentTarget.value })}
        />
        <Checkbox
          label={words.keysRemember}
          checked={fields.isRemembered}
          onChange={({ currentTarget }) => set({ isRemembered: currentTarget.checked })}
        />
      </Stack>
      <Fold
        icon={AdjustmentsHorizontalIcon}
        label={words.more}
        isNeeded={!arePorts(fields.ports) || FOLDED.some((field) => fieldError(error, field) !== undefined)}
      >
        <Folded fields={fields} set={set} error={error} />
      </Fold>
    </Stack>
  );
}

function Folded({ fields, set, error }: MoreProps) {
  return (
    <Stack gap="lg" mt="md">
      <Textarea
        label={words.userData}
        description={words.userDataLead}
        placeholder={'#!/bin/sh\necho hello > hello.txt'}
        value={fields.user_data}
        error={fieldError(error, 'user_data')}
        autosize
        minRows={2}
        maxRows={14}
        spellCheck={false}
        classNames={{ input: 'mono' }}
        onChange={({ currentTarget }) => set({ user_data: currentTarget.value })}
      />
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <TextInput
          label={words.ports}
          description={words.portsLead}
          placeholder="3000, 5432"
          inputMode="numeric"
          value={fields.ports}
          error={arePorts(fields.ports) ? fieldError(error, 'ports') : words.portsWrong}
          onChange={({ currentTarget }) => set({ ports: currentTarget.value })}
        />
        <TextInput
          label={words.tags}
          description={words.tagsLead}
          placeholder="blog, production"
          value={fields.tags}
          error={fieldError(error, 'tags')}
          onChange={({ currentTarget }) => set({ tags: currentTarget.value })}
        />
      </SimpleGrid>
    </Stack>
  );
}
