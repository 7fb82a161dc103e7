/** Fields of the form for a new machine, its call, and optional fields. */

import { AdjustmentsHorizontalIcon } from '@heroicons/react/24/outline';
import { Checkbox, SimpleGrid, Stack, Textarea, TextInput } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { NewVm } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { Fold } from '../../parts/forms/fold.tsx';
import { machineText } from '../../texts/machine-text.ts';
import { startUnseen } from './power.ts';
import { vmQuery, vmsQuery } from './queries.ts';
import { SavedKeys } from './saved-keys.tsx';

const KEYS_PLACE = 'cloudlet.ssh-keys';

export interface MachineFields {
  readonly name: string;
  readonly image: string;
  readonly instance_type: string;
  readonly ssh_keys: string;
  readonly ssh_key_names: readonly string[];
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
  ssh_keys: '',
  ssh_key_names: [],
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

/** Only the filled-in fields. */
export function bodyOf(fields: MachineFields): NewVm {
  const { name, image, instance_type, user_data, tags, ssh_key_names } = fields;
  const ssh_keys = linesOf(fields.ssh_keys);
  const ports = arePorts(fields.ports) ? numbersOf(fields.ports) : [];
  return {
    name,
    instance_type,
    image,
    ...(ssh_keys.length === 0 ? {} : { ssh_keys }),
    ...(ssh_key_names.length === 0 ? {} : { ssh_key_names: [...ssh_key_names] }),
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
  const queryClient = useQueryClient();
  const navigate = useNavigate();
  const form = useCloudForm({
    values: { ...EMPTY, ssh_keys: keptKeys },
    send: (fields) => cloud.createVm(bodyOf(fields)),
    // Except the new machine: its page already shows it as starting.
    invalidates: [{ queryKey: vmsQuery.queryKey, exact: true }],
    onDone: async (vm) => {
      const { isRemembered, isStarted, ssh_keys } = form.values;
      keepKeys(isRemembered ? ssh_keys : '');
      queryClient.setQueryData(vmQuery(vm.vm_id).queryKey, isStarted ? { ...vm, state: 'starting' } : vm);
      // Its page shows the outcome of the start.
      if (isStarted) void startUnseen(queryClient, vm.vm_id);
      await navigate({
        to: '/machines/$vm',
        params: { vm: vm.vm_id },
        search: isStarted ? { tab: 'console' } : {},
      });
    },
  });
  return form;
}

export type MachineForm = ReturnType<typeof useMachineForm>;

const words = machineText.form;

/** Fields in the collapsed part. */
const FOLDED = ['user_data', 'ports', 'tags'];

export function MachineMore({ form }: { form: MachineForm }) {
  const { ssh_keys, ssh_key_names, ports } = form.values;
  return (
    <Stack gap="lg">
      <Stack gap="xs">
        <SavedKeys chosen={ssh_key_names} onChange={(names) => form.set({ ssh_key_names: names })} />
        <Textarea
          label={words.keys}
          description={
            ssh_keys.trim() === '' && ssh_key_names.length === 0
              ? `${words.keysLead} ${words.noKeys}`
              : words.keysLead
          }
          placeholder="ssh-ed25519 AAAA…"
          autosize
          minRows={2}
          maxRows={8}
          spellCheck={false}
          classNames={{ input: 'mono' }}
          {...form.text('ssh_keys')}
        />
        <Checkbox label={words.keysRemember} {...form.check('isRemembered')} />
      </Stack>
      <Fold
        icon={AdjustmentsHorizontalIcon}
        label={words.more}
        isNeeded={!arePorts(ports) || FOLDED.some((field) => form.errorOf(field) !== undefined)}
      >
        <Folded form={form} />
      </Fold>
    </Stack>
  );
}

function Folded({ form }: { form: MachineForm }) {
  const ports = form.text('ports');
  return (
    <Stack gap="lg" mt="md">
      <Textarea
        label={words.userData}
        description={words.userDataLead}
        placeholder={'#!/bin/sh\necho hello > hello.txt'}
        autosize
        minRows={2}
        maxRows={14}
        spellCheck={false}
        classNames={{ input: 'mono' }}
        {...form.text('user_data')}
      />
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <TextInput
          label={words.ports}
          description={words.portsLead}
          placeholder="3000, 5432"
          inputMode="numeric"
          {...ports}
          error={arePorts(ports.value) ? ports.error : words.portsWrong}
        />
        <TextInput
          label={words.tags}
          description={words.tagsLead}
          placeholder="blog, production"
          {...form.text('tags')}
        />
      </SimpleGrid>
    </Stack>
  );
}
