/** A choice of one month of the past years. (Firefox and Safari have no `<input type=month>`.) */
import { NativeSelect } from '@mantine/core';
import { readerLocales } from '../../texts/reader-locales.ts';
import { text } from '../../texts/text.ts';
import { thisMonth } from './month.ts';

/** How far back the list goes. */
const MONTHS = 36;
const name = new Intl.DateTimeFormat(readerLocales, { month: 'long', year: 'numeric', timeZone: 'UTC' });

interface MonthSelectProps {
  /** `YYYY-MM`; may be older than the list. */
  readonly value: string;
  readonly onChange: (month: string) => void;
}

export function MonthSelect({ value, onChange }: MonthSelectProps) {
  const [year = 0, month = 1] = thisMonth().split('-').map(Number);
  const past = Array.from({ length: MONTHS }, (_, ago) =>
    new Date(Date.UTC(year, month - 1 - ago)).toISOString().slice(0, 7),
  );
  const months = past.includes(value) ? past : [...past, value];
  return (
    <NativeSelect
      label={text.billing.month}
      w="fit-content"
      value={value}
      onChange={({ currentTarget }) => onChange(currentTarget.value)}
      data={months.map((one) => ({ value: one, label: name.format(Date.parse(`${one}-01`)) }))}
    />
  );
}
