/** Type and metadata of an object, edited on the page. Values other than text are shown as JSON. */

import { PlusIcon, XMarkIcon } from '@heroicons/react/24/outline';
import { ActionIcon, Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { StorageObjectDetails } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { useCloudForm } from '../../../parts/cloud-form.ts';
import { CallSample } from '../../../parts/commands/call-sample.tsx';
import { Refused } from '../../../parts/forms/warning.tsx';
import { showDone } from '../../../parts/notices.tsx';
import { text } from '../../../texts/text.ts';

interface Label {
  readonly id: number;
  readonly name: string;
  readonly value: string;
  readonly isJson: boolean;
}

interface LabelsFormProps {
  readonly object: StorageObjectDetails;
  readonly onEnd: () => void;
}

export function LabelsForm({ object, onEnd }: LabelsFormProps) {
  const { id } = object;
  // The version when the form was opened, to detect concurrent changes.
  const [version_id] = useState(object.version_id);
  const [labels, setLabels] = useState(() => labelsOf(object.metadata));
  const metadata = labels.length === 0 ? null : metadataOf(labels);
  const form = useCloudForm({
    values: { mime_type: object.mime_type },
    send: (values) => cloud.changeObject(id, { ...values, metadata, version_id }),
    invalidates: [{ queryKey: ['files', object.bucket] }],
    onDone: () => {
      showDone(text.storage.labelsSaved(object.name));
      onEnd();
    },
  });
  const isTwice = ({ id, name }: Label) =>
    labels.some((other) => other.id !== id && other.name === name && name !== '');
  const write = (changed: Label) =>
    setLabels(labels.map((label) => (label.id === changed.id ? changed : label)));
  return (
    <form onSubmit={form.submit}>
      <Stack>
        <TextInput
          label={text.storage.type}
          required
          data-autofocus
          withAsterisk={false}
          spellCheck={false}
          {...form.text('mime_type')}
        />
        <Stack gap="xs" role="group" aria-label={text.storage.metadata}>
          <Text size="sm" fw={600}>
            {text.storage.metadata}
          </Text>
          {labels.map((label) => (
            <LabelRow
              key={label.id}
              label={label}
              error={isTwice(label) ? text.storage.labelTwice : undefined}
              onChange={write}
              onRemove={() => setLabels(labels.filter((other) => other !== label))}
            />
          ))}
          <Button
            variant="subtle"
            size="compact-sm"
            leftSection={<PlusIcon width={16} aria-hidden />}
            style={{ alignSelf: 'start' }}
            onClick={() => setLabels([...labels, { id: nextId(labels), name: '', value: '', isJson: false }])}
          >
            {text.storage.addLabel}
          </Button>
        </Stack>
        <Refused {...form.refusal} />
        <Group>
          <Button type="submit" loading={form.isBusy} disabled={labels.some(isTwice)}>
            {text.storage.saveLabels}
          </Button>
          <Button variant="default" onClick={onEnd}>
            {text.shell.cancel}
          </Button>
        </Group>
        <CallSample operation="changeObject" args={[id, { metadata, ...form.values, version_id }]} />
      </Stack>
    </form>
  );
}

interface LabelRowProps {
  readonly label: Label;
  readonly error: string | undefined;
  readonly onChange: (label: Label) => void;
  readonly onRemove: () => void;
}

function LabelRow({ label, error, onChange, onRemove }: LabelRowProps) {
  return (
    <Group gap="xs" wrap="nowrap" align="start">
      <TextInput
        aria-label={text.storage.labelName}
        placeholder={text.storage.labelName}
        value={label.name}
        error={error}
        required
        flex={2}
        onChange={({ currentTarget }) => onChange({ ...label, name: currentTarget.value })}
      />
      <TextInput
        aria-label={text.storage.labelValue}
        placeholder={text.storage.labelValue}
        value={label.value}
        flex={3}
        onChange={({ currentTarget }) => onChange({ ...label, value: currentTarget.value })}
      />
      <ActionIcon
        variant="subtle"
        color="gray"
        size={36}
        aria-label={text.storage.removeLabel(label.name)}
        onClick={onRemove}
      >
        <XMarkIcon width={18} />
      </ActionIcon>
    </Group>
  );
}

const nextId = (labels: readonly Label[]) => Math.max(0, ...labels.map(({ id }) => id)) + 1;

function labelsOf(metadata: StorageObjectDetails['metadata']): Label[] {
  return Object.entries(metadata ?? {}).map(([name, value], id) => {
    const isJson = typeof value !== 'string';
    return { id, name, value: isJson ? JSON.stringify(value) : value, isJson };
  });
}

function metadataOf(labels: readonly Label[]): Record<string, unknown> {
  return Object.fromEntries(labels.map(({ name, value, isJson }) => [name, isJson ? asJson(value) : value]));
}

/** The text itself if it is no longer JSON. */
function asJson(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
