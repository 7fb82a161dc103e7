/** Tags of a bucket. */
import { PlusIcon, XMarkIcon } from '@heroicons/react/24/outline';
import { ActionIcon, Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { s3Text } from '../../../texts/s3-text.ts';
import { SettingForm, type SettingProps, useSettingForm } from './setting-form.tsx';

const words = s3Text.tags;

interface Tag {
  readonly id: number;
  readonly name: string;
  readonly value: string;
}

export function TagsForm({ bucket, value: tags }: SettingProps<'tags'>) {
  const form = useSettingForm({
    bucket,
    values: { rows: Object.entries(tags ?? {}).map(([name, value], id): Tag => ({ id, name, value })) },
    changeOf,
    saved: words.saved,
  });
  const { rows } = form.values;
  const isTwice = ({ id, name }: Tag) => rows.some((other) => other.id !== id && other.name === name);
  const write = (changed: Tag) =>
    form.set({ rows: rows.map((row) => (row.id === changed.id ? changed : row)) });
  const nextId = Math.max(-1, ...rows.map(({ id }) => id)) + 1;
  return (
    <SettingForm form={form} isWrong={rows.some(isTwice)}>
      {rows.length === 0 && <Text size="sm">{words.none}</Text>}
      {rows.map((row) => (
        <Group key={row.id} gap="xs" wrap="nowrap" align="start">
          <TextInput
            aria-label={words.name}
            placeholder={words.name}
            value={row.name}
            error={isTwice(row) ? words.twice : undefined}
            required
            flex={2}
            onChange={({ currentTarget }) => write({ ...row, name: currentTarget.value })}
          />
          <TextInput
            aria-label={words.value}
            placeholder={words.value}
            value={row.value}
            flex={3}
            onChange={({ currentTarget }) => write({ ...row, value: currentTarget.value })}
          />
          <ActionIcon
            variant="subtle"
            color="gray"
            size={36}
            aria-label={words.remove(row.name)}
            onClick={() => form.set({ rows: rows.filter(({ id }) => id !== row.id) })}
          >
            <XMarkIcon width={18} />
          </ActionIcon>
        </Group>
      ))}
      <Stack align="flex-start">
        <Button
          variant="subtle"
          size="compact-sm"
          leftSection={<PlusIcon width={16} aria-hidden />}
          onClick={() => form.set({ rows: [...rows, { id: nextId, name: '', value: '' }] })}
        >
          {words.add}
        </Button>
      </Stack>
    </SettingForm>
  );
}

function changeOf({ rows }: { readonly rows: readonly Tag[] }) {
  const tags = Object.fromEntries(rows.map(({ name, value }) => [name, value]));
  return { tags: rows.length === 0 ? null : tags };
}
