/** Entries of the audit log about the objects of a bucket. */
import { Choices } from '../../../parts/forms/choices.tsx';
import { s3Text } from '../../../texts/s3-text.ts';
import { SettingForm, type SettingProps, useSettingForm } from './setting-form.tsx';

const words = s3Text.dataEvents;
const OPTIONS = ['none', 'writes', 'all'] as const;
type Option = (typeof OPTIONS)[number];

export function DataEventsForm({ bucket, value }: SettingProps<'data_events'>) {
  const form = useSettingForm({
    bucket,
    values: { logged: (value ?? 'none') as Option },
    changeOf: ({ logged }) => ({ data_events: logged === 'none' ? null : logged }),
    saved: words.saved,
  });
  return (
    <SettingForm form={form}>
      <Choices
        label={words.title}
        value={form.values.logged}
        options={OPTIONS.map((option) => {
          const [title = '', note = ''] = words.options[option];
          return { value: option, title, notes: [note] };
        })}
        onChange={(logged) => form.set({ logged: logged as Option })}
      />
    </SettingForm>
  );
}
