/** Rules that delete files by themselves, and what they would delete. */
import { PlusIcon, XMarkIcon } from '@heroicons/react/24/outline';
import {
  ActionIcon,
  Button,
  Group,
  NumberInput,
  Paper,
  SimpleGrid,
  Stack,
  Switch,
  Text,
  TextInput,
} from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import type { BucketLifecycleRule, LeavingObject, LifecyclePreview } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { type Column, DataTable } from '../../parts/data-table.tsx';
import { showDone } from '../../parts/notices.tsx';
import { sayBytes, sayName } from '../../parts/say.ts';
import { Refused } from '../../parts/warning.tsx';
import { When } from '../../parts/when.tsx';
import { text } from '../../texts/text.ts';
import { settingsQuery } from './queries.ts';
import { SettingForm, SettingsOf } from './setting-form.tsx';

const words = text.s3.lifecycle;

interface Row {
  readonly id: number;
  readonly rule: BucketLifecycleRule;
}

/** Members that hold a number of days, or of versions. */
const NUMBERS = {
  days: words.days,
  noncurrent_days: words.noncurrentDays,
  noncurrent_kept: words.noncurrentKept,
  abort_days: words.abortDays,
} as const;

export function LifecycleTab({ bucket }: { bucket: string }) {
  return (
    <SettingsOf bucket={bucket} lead={words.lead}>
      {({ lifecycle }) => <LifecycleForm bucket={bucket} rules={lifecycle ?? []} />}
    </SettingsOf>
  );
}

function LifecycleForm({ bucket, rules }: { bucket: string; rules: readonly BucketLifecycleRule[] }) {
  const form = useCloudForm({
    values: { rows: rules.map((rule, id): Row => ({ id, rule })) as readonly Row[] },
    send: ({ rows }) => cloud.changeBucketSettings(bucket, changeOf(rows)),
    invalidates: [settingsQuery(bucket)],
    onDone: () => showDone(words.saved(bucket)),
  });
  const preview = useMutation({
    mutationFn: (rows: readonly Row[]) =>
      cloud.previewBucketLifecycle(bucket, { lifecycle: rows.map(({ rule }) => rule) }),
    meta: { shown: true },
  });
  const { rows } = form.values;
  const change = changeOf(rows);
  const isSame = JSON.stringify(change.lifecycle ?? []) === JSON.stringify(rules);
  const nextId = Math.max(-1, ...rows.map(({ id }) => id)) + 1;
  return (
    <SettingForm bucket={bucket} form={form} change={change} isSame={isSame}>
      {rows.length === 0 && <Text size="sm">{words.none}</Text>}
      {rows.map(({ id, rule }, index) => (
        <Rule
          key={id}
          rule={rule}
          number={index + 1}
          onChange={(changed) =>
            form.set({ rows: rows.map((row) => (row.id === id ? { id, rule: changed } : row)) })
          }
          onRemove={() => form.set({ rows: rows.filter((row) => row.id !== id) })}
        />
      ))}
      <Group>
        <Button
          variant="subtle"
          size="compact-sm"
          leftSection={<PlusIcon width={16} aria-hidden />}
          onClick={() => form.set({ rows: [...rows, { id: nextId, rule: { enabled: true } }] })}
        >
          {words.add}
        </Button>
        {rows.length > 0 && (
          <Button
            variant="default"
            size="compact-sm"
            loading={preview.isPending}
            onClick={() => preview.mutate(rows)}
          >
            {words.preview}
          </Button>
        )}
      </Group>
      <div aria-live="polite">
        <Refused error={preview.error} />
        {preview.data !== undefined && <Preview preview={preview.data} />}
      </div>
    </SettingForm>
  );
}

function changeOf(rows: readonly Row[]) {
  return { lifecycle: rows.length === 0 ? null : rows.map(({ rule }) => rule) };
}

interface RuleProps {
  readonly rule: BucketLifecycleRule;
  readonly number: number;
  readonly onChange: (rule: BucketLifecycleRule) => void;
  readonly onRemove: () => void;
}

function Rule({ rule, number, onChange, onRemove }: RuleProps) {
  const { tags, larger_than, smaller_than, date } = rule;
  const hasMore = [tags, larger_than, smaller_than, date].some((each) => each !== undefined);
  return (
    <Paper withBorder p="md" radius="md" component="section" aria-label={words.rule(number)}>
      <Stack gap="sm">
        <Group justify="space-between" wrap="nowrap">
          <Text fw={600}>{words.rule(number)}</Text>
          <Group wrap="nowrap">
            <Switch
              label={words.isOn}
              checked={rule.enabled}
              onChange={({ currentTarget }) => onChange({ ...rule, enabled: currentTarget.checked })}
            />
            <ActionIcon variant="subtle" color="gray" aria-label={words.remove(number)} onClick={onRemove}>
              <XMarkIcon width={18} />
            </ActionIcon>
          </Group>
        </Group>
        <TextInput
          label={words.prefix}
          description={words.prefixHint}
          spellCheck={false}
          autoCapitalize="none"
          value={rule.prefix ?? ''}
          onChange={({ currentTarget }) => onChange(withText(rule, currentTarget.value))}
        />
        <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
          {(Object.keys(NUMBERS) as (keyof typeof NUMBERS)[]).map((name) => (
            <NumberInput
              key={name}
              label={NUMBERS[name]}
              {...(name === 'days' && { description: words.daysHint })}
              inputWrapperOrder={['label', 'input', 'description', 'error']}
              min={1}
              allowDecimal={false}
              allowNegative={false}
              value={rule[name] ?? ''}
              onChange={(value) => onChange(withNumber(rule, name, value))}
            />
          ))}
        </SimpleGrid>
        <Switch
          label={words.markers}
          checked={rule.markers === true}
          disabled={rule.days !== undefined || date !== undefined}
          onChange={({ currentTarget }) => onChange(withMarkers(rule, currentTarget.checked))}
        />
        {hasMore && <Text size="sm">{words.alsoSet}</Text>}
      </Stack>
    </Paper>
  );
}

function withText({ prefix: _, ...rule }: BucketLifecycleRule, prefix: string): BucketLifecycleRule {
  return prefix === '' ? rule : { ...rule, prefix };
}

function withNumber(
  rule: BucketLifecycleRule,
  name: keyof typeof NUMBERS,
  value: number | string,
): BucketLifecycleRule {
  const { [name]: _, ...rest } = rule;
  if (typeof value !== 'number') return rest;
  // Files have one end only.
  const { markers: __, ...others } = rest;
  return name === 'days' ? { ...others, days: value } : { ...rest, [name]: value };
}

function withMarkers({ markers: _, ...rule }: BucketLifecycleRule, isOn: boolean): BucketLifecycleRule {
  return isOn ? { ...rule, markers: true } : rule;
}

const COLUMNS: readonly Column<LeavingObject>[] = [
  { name: text.storage.name, cell: ({ name }) => sayName(name), title: ({ name }) => name },
  { name: text.storage.size, cell: ({ size }) => sayBytes(size) },
  { name: words.leaves, cell: ({ leaves_at: at }) => <When at={at} /> },
];

function Preview({
  preview: { looked_at: looked, is_cut: isCut, due, objects },
}: {
  preview: LifecyclePreview;
}) {
  return (
    <Stack gap="xs">
      <Text size="sm">
        {objects.length === 0 ? words.nothing(looked) : words.found(objects.length, looked)}{' '}
        {due > 0 && words.due(due)} {isCut && words.cut}
      </Text>
      {objects.length > 0 && <DataTable columns={COLUMNS} rows={objects} keyOf={({ name }) => name} />}
    </Stack>
  );
}
