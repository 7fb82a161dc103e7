/** The websites whose scripts may reach a bucket. */
import { PlusIcon, XMarkIcon } from '@heroicons/react/24/outline';
import {
  ActionIcon,
  Button,
  Group,
  MultiSelect,
  NumberInput,
  Paper,
  Stack,
  TagsInput,
  Text,
} from '@mantine/core';
import type { BucketCorsRule } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { showDone } from '../../parts/notices.tsx';
import { text } from '../../texts/text.ts';
import { settingsQuery } from './queries.ts';
import { SettingForm, SettingsOf } from './setting-form.tsx';

const words = text.s3.cors;
const METHODS = ['GET', 'HEAD', 'PUT', 'POST', 'DELETE'];

interface Row {
  readonly id: number;
  readonly rule: BucketCorsRule;
}

const NEW_RULE: BucketCorsRule = { origins: [], methods: ['GET', 'HEAD'], headers: [], exposed_headers: [] };

export function CorsTab({ bucket }: { bucket: string }) {
  return (
    <SettingsOf bucket={bucket} lead={words.lead}>
      {({ cors }) => <CorsForm bucket={bucket} rules={cors ?? []} />}
    </SettingsOf>
  );
}

function CorsForm({ bucket, rules }: { bucket: string; rules: readonly BucketCorsRule[] }) {
  const form = useCloudForm({
    values: { rows: rules.map((rule, id): Row => ({ id, rule })) as readonly Row[] },
    send: ({ rows }) => cloud.changeBucketSettings(bucket, changeOf(rows)),
    invalidates: [settingsQuery(bucket)],
    onDone: () => showDone(words.saved(bucket)),
  });
  const { rows } = form.values;
  const change = changeOf(rows);
  const isSame = JSON.stringify(change.cors ?? []) === JSON.stringify(rules);
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
      <Stack align="flex-start">
        <Button
          variant="subtle"
          size="compact-sm"
          leftSection={<PlusIcon width={16} aria-hidden />}
          onClick={() => form.set({ rows: [...rows, { id: nextId, rule: NEW_RULE }] })}
        >
          {words.add}
        </Button>
      </Stack>
    </SettingForm>
  );
}

function changeOf(rows: readonly Row[]) {
  return { cors: rows.length === 0 ? null : rows.map(({ rule }) => rule) };
}

interface RuleProps {
  readonly rule: BucketCorsRule;
  readonly number: number;
  readonly onChange: (rule: BucketCorsRule) => void;
  readonly onRemove: () => void;
}

function Rule({ rule, number, onChange, onRemove }: RuleProps) {
  const { max_age_seconds: age, ...rest } = rule;
  return (
    <Paper withBorder p="md" radius="md" component="section" aria-label={words.rule(number)}>
      <Stack gap="sm">
        <Group justify="space-between" wrap="nowrap">
          <Text fw={600}>{words.rule(number)}</Text>
          <ActionIcon variant="subtle" color="gray" aria-label={words.remove(number)} onClick={onRemove}>
            <XMarkIcon width={18} />
          </ActionIcon>
        </Group>
        <TagsInput
          label={words.origins}
          description={words.originsHint}
          value={[...rule.origins]}
          acceptValueOnBlur
          onChange={(origins) => onChange({ ...rule, origins })}
        />
        <MultiSelect
          label={words.methods}
          data={METHODS}
          value={[...rule.methods]}
          onChange={(methods) => onChange({ ...rule, methods })}
        />
        <TagsInput
          label={words.headers}
          description={words.headersHint}
          value={[...(rule.headers ?? [])]}
          acceptValueOnBlur
          onChange={(headers) => onChange({ ...rule, headers })}
        />
        <TagsInput
          label={words.exposed}
          description={words.exposedHint}
          value={[...(rule.exposed_headers ?? [])]}
          acceptValueOnBlur
          onChange={(exposed_headers) => onChange({ ...rule, exposed_headers })}
        />
        <NumberInput
          label={words.age}
          min={0}
          max={999_999_999}
          allowDecimal={false}
          value={age ?? ''}
          maw={260}
          onChange={(value) =>
            onChange(typeof value === 'number' ? { ...rest, max_age_seconds: value } : rest)
          }
        />
      </Stack>
    </Paper>
  );
}
