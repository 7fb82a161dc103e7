/** The choice of a month, and its days as bars. (Firefox and Safari have no `<input type=month>`.) */
import { NativeSelect } from '@mantine/core';
import { sayCredits } from '../../parts/say.ts';
import { readerLocales } from '../../texts/reader-locales.ts';
import { text } from '../../texts/text.ts';
import classes from './day-bars.module.css';
import { thisMonth } from './queries.ts';

/** Number of months in the list. */
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

interface DayBarsProps {
  readonly days: readonly { readonly date: string; readonly cost: number | string }[];
}

/** One bar per day, with its cost as height. */
export function DayBars({ days }: DayBarsProps) {
  const most = Math.max(...days.map(({ cost }) => Number(cost)), Number.MIN_VALUE);
  return (
    <ol className={classes.days}>
      {days.map(({ date, cost }) => {
        const words = text.billing.costOn(date, sayCredits(cost));
        return (
          <li key={date} title={words}>
            <span className={classes.bar} style={{ height: `${(Number(cost) / most) * 100}%` }} />
            <span className={classes.words}>{words}</span>
            <span className={classes.date} aria-hidden>
              {Number(date.slice(8))}
            </span>
          </li>
        );
      })}
    </ol>
  );
}
