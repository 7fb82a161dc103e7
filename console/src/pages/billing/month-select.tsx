/** The choice of a month, and its days as bars. (Firefox and Safari have no `<input type=month>`.) */
import { Group, NativeSelect, Text } from '@mantine/core';
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

const SERVICES = Object.keys(text.billing.services) as (keyof typeof text.billing.services)[];
type Service = (typeof SERVICES)[number];

type Day = Readonly<Record<Service, number | string>> & {
  readonly date: string;
  readonly cost: number | string;
};

/** Bar chart of the cost per day, stacked by service. */
export function DayBars({ days }: { readonly days: readonly Day[] }) {
  const most = Math.max(...days.map(({ cost }) => Number(cost)), Number.MIN_VALUE);
  const used = SERVICES.filter((service) => days.some((day) => Number(day[service]) > 0));
  return (
    <>
      <ol className={classes.days}>
        {days.map((day) => {
          const words = text.billing.costOn(day.date, sayCredits(day.cost), partsOf(day, used));
          return (
            <li key={day.date} title={words}>
              {used.toReversed().map((service) => (
                <span
                  key={service}
                  className={classes.bar}
                  data-service={service}
                  style={{ height: `${(Number(day[service]) / most) * 100}%` }}
                />
              ))}
              <span className={classes.words}>{words}</span>
              <span className={classes.date} aria-hidden>
                {Number(day.date.slice(8))}
              </span>
            </li>
          );
        })}
      </ol>
      {used.length > 1 && (
        <Group gap="md" mt="xs" aria-hidden>
          {used.map((service) => (
            <Group key={service} gap={6}>
              <span className={classes.swatch} data-service={service} />
              <Text size="sm" c="dimmed">
                {text.billing.services[service]}
              </Text>
            </Group>
          ))}
        </Group>
      )}
    </>
  );
}

/** The cost of each service of the day, if there are several; else empty. */
function partsOf(day: Day, used: readonly Service[]): string {
  const parts = used.filter((service) => Number(day[service]) > 0);
  if (parts.length < 2) return '';
  return parts.map((service) => `${text.billing.services[service]} ${sayCredits(day[service])}`).join(', ');
}
