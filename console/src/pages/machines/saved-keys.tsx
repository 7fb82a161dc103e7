/** The SSH keys that the account keeps by name: chosen for a machine, added, deleted. */
import { KeyIcon } from '@heroicons/react/24/outline';
import { Button, Checkbox, CloseButton, Group, Stack, Text, Textarea, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { SshKey } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { Confirm, FormModal } from '../../parts/forms/dialog.tsx';
import { machineText } from '../../texts/machine-text.ts';
import { sshKeysQuery } from './queries.ts';

const words = machineText.keys;

interface SavedKeysProps {
  readonly chosen: readonly string[];
  readonly onChange: (names: readonly string[]) => void;
}

export function SavedKeys({ chosen, onChange }: SavedKeysProps) {
  const { data: keys = [] } = useQuery(sshKeysQuery);
  const [isAdding, setAdding] = useState(false);
  const [removed, setRemoved] = useState<SshKey | null>(null);
  const without = (name: string) => chosen.filter((one) => one !== name);
  return (
    <Stack gap="xs" role="group" aria-label={words.title}>
      {keys.map((key) => (
        <Group key={key.name} gap="xs">
          <Checkbox
            label={key.name}
            description={<span className="mono">{key.fingerprint}</span>}
            checked={chosen.includes(key.name)}
            onChange={({ currentTarget: { checked } }) =>
              onChange(checked ? [...chosen, key.name] : without(key.name))
            }
          />
          <CloseButton size="sm" aria-label={words.removeOne(key.name)} onClick={() => setRemoved(key)} />
        </Group>
      ))}
      <Group>
        <Button
          size="compact-sm"
          variant="default"
          leftSection={<KeyIcon width={16} />}
          onClick={() => setAdding(true)}
        >
          {words.add}
        </Button>
      </Group>
      {isAdding && (
        <AddKey onAdded={(name) => onChange([...chosen, name])} onClose={() => setAdding(false)} />
      )}
      {removed !== null && (
        <RemoveKey
          name={removed.name}
          onRemoved={() => onChange(without(removed.name))}
          onClose={() => setRemoved(null)}
        />
      )}
    </Stack>
  );
}

interface AddKeyProps {
  readonly onAdded?: (name: string) => void;
  readonly onClose: () => void;
}

export function AddKey({ onAdded, onClose }: AddKeyProps) {
  const form = useCloudForm({
    values: { name: '', public_key: '' },
    send: (key) => cloud.addSshKey(key),
    invalidates: [sshKeysQuery],
    onDone: ({ name }) => {
      onAdded?.(name);
      onClose();
    },
  });
  const { name, public_key } = form.values;
  return (
    <FormModal
      isOpen
      title={words.add}
      action={words.add}
      form={{
        ...form,
        // The form of the machine is around this one.
        submit: (event) => {
          event.stopPropagation();
          form.submit(event);
        },
      }}
      isIncomplete={name === '' || public_key.trim() === ''}
      onClose={onClose}
    >
      <TextInput
        label={words.name}
        placeholder="laptop"
        data-autofocus
        spellCheck={false}
        {...form.text('name')}
      />
      <Textarea
        label={words.key}
        description={words.keyLead}
        placeholder="ssh-ed25519 AAAA…"
        autosize
        minRows={3}
        spellCheck={false}
        classNames={{ input: 'mono' }}
        {...form.text('public_key')}
      />
    </FormModal>
  );
}

interface RemoveKeyProps {
  readonly name: string;
  readonly onRemoved?: () => void;
  readonly onClose: () => void;
}

export function RemoveKey({ name, onRemoved, onClose }: RemoveKeyProps) {
  const remove = useMutation({
    mutationFn: () => cloud.deleteSshKey(name),
    meta: { shown: true, invalidates: [sshKeysQuery] },
    onSuccess: () => {
      onRemoved?.();
      onClose();
    },
  });
  return (
    <Confirm
      isOpen
      title={words.removeAsk(name)}
      action={words.remove}
      isBusy={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <Text size="sm">{words.removeLead}</Text>
    </Confirm>
  );
}
