/** The schedule and its keep rules, with a preview of their effect. */
import { Group, Input, NativeSelect, Stack, Text, TextInput } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { RecoverySchedule } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { CallSample } from '../../parts/commands/call-sample.tsx';
import { FormModal } from '../../parts/forms/dialog.tsx';
import { Refused } from '../../parts/forms/warning.tsx';
import { showDone } from '../../parts/notices.tsx';
import { type Column, DataTable } from '../../parts/tables/data-table.tsx';
import { When } from '../../parts/tables/when.tsx';
import { scheduleText as words } from '../../texts/pages/schedule-text.ts';
import { RECOVERY, retentionQuery } from './queries.ts';

type Rule = keyof RecoverySchedule['keep'];
const RULES = Object.keys(words.rules) as Rule[];

function choices<Value extends string>(of: Readonly<Record<Value, string>>) {
  return (Object.keys(of) as Value[]).map((value) => ({ value, label: of[value] }));
}

interface ScheduleFormProps {
  readonly present: RecoverySchedule;
  readonly onClose: () => void;
}

export function ScheduleForm({ present, onClose }: ScheduleFormProps) {
  const { every, at, weekday, keep } = present;
  // The form is opened to set a schedule, so the default is daily.
  const form = useCloudForm({
    values: { every: every === 'off' ? 'daily' : every, at, weekday, ...keep } as Values,
    send: (values) => cloud.updateRecoverySchedule(changeOf(values)),
    invalidates: [RECOVERY],
    onDone: () => {
      onClose();
      showDone(words.saved);
    },
  });
  const { values } = form;
  return (
    <FormModal isOpen title={words.title} action={words.save} form={form} size="lg" onClose={onClose}>
      <Group align="flex-start" grow>
        {/* Mantine's Select and NumberInput would increase the first load of the console. */}
        <NativeSelect
          label={words.every}
          data={choices(words.everyChoices)}
          data-autofocus
          {...form.text('every')}
        />
        {values.every !== 'off' && (
          <TextInput
            label={values.every === 'hourly' ? words.atHourly : words.at}
            placeholder="03:00"
            {...form.text('at')}
          />
        )}
        {values.every === 'weekly' && (
          <NativeSelect label={words.weekday} data={choices(words.weekdays)} {...form.text('weekday')} />
        )}
      </Group>
      {values.every !== 'off' && (
        <Input.Wrapper
          label={words.keep}
          description={words.keepLead}
          error={form.errorOf('keep')}
          labelElement="div"
        >
          <Group align="flex-start" grow my="xs">
            {RULES.map((rule) => (
              <TextInput
                key={rule}
                type="number"
                min={0}
                label={words.rules[rule]}
                value={values[rule]}
                error={form.errorOf(`keep.${rule}`)}
                onChange={({ currentTarget }) => form.set({ [rule]: Number(currentTarget.value) })}
              />
            ))}
          </Group>
        </Input.Wrapper>
      )}
      {present.is_default_target && (
        <Text size="sm" c="dimmed">
          {words.halfRoom}
        </Text>
      )}
      {values.every !== 'off' && <Preview keep={changeOf(values).keep} />}
      <CallSample operation="updateRecoverySchedule" args={[changeOf(values)]} />
    </FormModal>
  );
}

type Values = Pick<RecoverySchedule, 'every' | 'at' | 'weekday'> & RecoverySchedule['keep'];

function changeOf({ every, at, weekday, ...keep }: Values) {
  return { every, at, weekday, keep };
}

interface Row {
  readonly id: string;
  readonly at: string;
  readonly why: string;
}

/** Errors of the keep rules are shown at their fields after sending, and here before. */
function Preview({ keep }: { keep: RecoverySchedule['keep'] }) {
  const preview = useQuery({ ...retentionQuery(keep), placeholderData: keepPreviousData });
  if (preview.error !== null) return <Refused error={preview.error} />;
  if (preview.data === undefined) return null;
  const { stays, goes } = preview.data;
  const rows: Row[] = [
    ...stays.map(({ point_id: id, created_at: at, reasons }) => {
      return { id, at, why: reasons.map((reason) => words.reasons[reason]).join(', ') };
    }),
    ...goes.map(({ point_id: id, created_at: at }) => ({ id, at, why: words.goes })),
  ].sort((a, b) => (a.at < b.at ? 1 : -1));
  const columns: readonly Column<Row>[] = [
    { name: words.point, cell: ({ at }) => <When at={at} /> },
    { name: words.why, cell: ({ why }) => why },
  ];
  return (
    <Stack gap="xs">
      <Text fw={550}>{words.preview}</Text>
      <Text size="sm" c="dimmed" aria-live="polite">
        {rows.length === 0 ? words.previewNone : words.previewLead(stays.length, goes.length)}
      </Text>
      {rows.length > 0 && <DataTable columns={columns} rows={rows} keyOf={({ id }) => id} isBusy={false} />}
    </Stack>
  );
}
