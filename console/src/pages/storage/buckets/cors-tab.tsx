/** The websites whose scripts may reach a bucket. */
import { MultiSelect, NumberInput, TagsInput } from '@mantine/core';
import type { BucketCorsRule } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { useCloudForm } from '../../../parts/cloud-form.ts';
import { showDone } from '../../../parts/notices.tsx';
import { s3Text } from '../../../texts/s3-text.ts';
import { settingsQuery } from '../queries.ts';
import { SettingForm, SettingsOf } from './setting-form.tsx';
import { RuleFrame, rowsOf, rulesOf, SettingRows } from './setting-rows.tsx';

const words = s3Text.cors;
const METHODS = ['GET', 'HEAD', 'PUT', 'POST', 'DELETE'];

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
    values: { rows: rowsOf(rules) },
    send: ({ rows }) => cloud.changeBucketSettings(bucket, { cors: rulesOf(rows) }),
    invalidates: [settingsQuery(bucket)],
    onDone: () => showDone(words.saved(bucket)),
  });
  const { rows } = form.values;
  const cors = rulesOf(rows);
  const isSame = JSON.stringify(cors ?? []) === JSON.stringify(rules);
  return (
    <SettingForm bucket={bucket} form={form} change={{ cors }} isSame={isSame}>
      <SettingRows
        rows={rows}
        words={words}
        newRule={NEW_RULE}
        onChange={(changed) => form.set({ rows: changed })}
      >
        {(editor) => <Rule {...editor} />}
      </SettingRows>
    </SettingForm>
  );
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
    <RuleFrame title={words.rule(number)} remove={words.remove(number)} onRemove={onRemove}>
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
        onChange={(value) => onChange(typeof value === 'number' ? { ...rest, max_age_seconds: value } : rest)}
      />
    </RuleFrame>
  );
}
