/** The websites whose scripts may access a bucket. */
import { MultiSelect, NumberInput, TagsInput } from '@mantine/core';
import type { BucketCorsRule } from '../../../../../sdk/index.ts';
import { s3Text } from '../../../texts/s3-text.ts';
import { SettingForm, type SettingProps, useSettingForm } from './setting-form.tsx';
import { RuleFrame, rowsOf, rulesOf, SettingRows } from './setting-rows.tsx';

const words = s3Text.cors;
const METHODS = ['GET', 'HEAD', 'PUT', 'POST', 'DELETE'];

const NEW_RULE: BucketCorsRule = { origins: [], methods: ['GET', 'HEAD'], headers: [], exposed_headers: [] };

export function CorsForm({ bucket, value }: SettingProps<'cors'>) {
  const form = useSettingForm({
    bucket,
    values: { rows: rowsOf(value ?? []) },
    changeOf: ({ rows }) => ({ cors: rulesOf(rows) }),
    saved: words.saved,
  });
  return (
    <SettingForm form={form}>
      <SettingRows
        rows={form.values.rows}
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
