/** One bar for each day, as high as what it cost. */
import { sayCredits } from '../../parts/price.ts';
import { text } from '../../texts/text.ts';
import classes from './day-bars.module.css';

interface DayBarsProps {
  readonly days: readonly { readonly date: string; readonly cost: number | string }[];
}

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
