/** Lifecycle rules and a preview of the deletions. */
import { Button, NumberInput, SimpleGrid, Stack, Switch, Text, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import type { BucketLifecycleRule, LeavingObject, LifecyclePreview } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { Refused } from '../../../parts/forms/warning.tsx';
import { sayBytes, sayName } from '../../../parts/say.ts';
import { type Column, DataTable } from '../../../parts/tables/data-table.tsx';
import { When } from '../../../parts/tables/when.tsx';
import { s3Text } from '../../../texts/s3-text.ts';
import { text } from '../../../texts/text.ts';
import { SettingForm, type SettingProps, useSettingForm } from './setting-form.tsx';
import { type Row, RuleFrame, rowsOf, rulesOf, SettingRows } from './setting-rows.tsx';

const words = s3Text.lifecycle;

/** Members that are a number of days, or of versions. */
const NUMBERS = {
  days: words.days,
  noncurrent_days: words.noncurrentDays,
  noncurrent_kept: words.noncurrentKept,
  abort_days: words.abortDays,
} as const;

export function LifecycleForm({ bucket, value }: SettingProps<'lifecycle'>) {
  const form = useSettingForm({
    bucket,
    values: { rows: rowsOf(value ?? []) },
    changeOf: ({ rows }) => ({ lifecycle: rulesOf(rows) }),
    saved: words.saved,
  });
  const preview = useMutation({
    mutationFn: (rows: readonly Row<BucketLifecycleRule>[]) =>
      cloud.previewBucketLifecycle(bucket, { lifecycle: rows.map(({ rule }) => rule) }),
    meta: { shown: true },
  });
  const { rows } = form.values;
  const previewButton = rows.length > 0 && (
    <Button
      variant="default"
      size="compact-sm"
      loading={preview.isPending}
      onClick={() => preview.mutate(rows)}
    >
      {words.preview}
    </Button>
  );
  return (
    <SettingForm form={form}>
      <SettingRows
        rows={rows}
        words={words}
        newRule={{ enabled: true }}
        onChange={(changed) => form.set({ rows: changed })}
        actions={previewButton}
      >
        {(editor) => <Rule {...editor} />}
      </SettingRows>
      <div aria-live="polite">
        <Refused error={preview.error} />
        {preview.data !== undefined && <Preview preview={preview.data} />}
      </div>
    </SettingForm>
  );
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
  const isOn = (
    <Switch
      label={words.isOn}
      checked={rule.enabled}
      onChange={({ currentTarget }) => onChange({ ...rule, enabled: currentTarget.checked })}
    />
  );
  return (
    <RuleFrame title={words.rule(number)} remove={words.remove(number)} onRemove={onRemove} aside={isOn}>
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
    </RuleFrame>
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
  // Only one kind of expiry is possible.
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
