/** The part of the form that many leave as it is: keys, user data, ports, tags. */
import { AdjustmentsHorizontalIcon } from '@heroicons/react/24/outline';
import { Checkbox, SimpleGrid, Stack, Textarea, TextInput } from '@mantine/core';
import { Fold } from '../../parts/fold.tsx';
import { fieldError } from '../../parts/refusal.ts';
import { text } from '../../texts/text.ts';
import { arePorts, type MachineFields } from './machine-form.ts';

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
