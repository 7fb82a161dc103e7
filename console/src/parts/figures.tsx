/** A few numbers that matter, large, each with what it means. */
import type { ReactNode } from 'react';
import classes from './figures.module.css';

export interface LargeFigure {
  /** A word, or a link to where it comes from. */
  readonly name: ReactNode;
  readonly value: ReactNode;
  /** Small, below the value. */
  readonly note?: ReactNode;
}

/** The names are told apart by their place: a list of figures never changes its order. */
export function Figures({ figures }: { figures: readonly LargeFigure[] }) {
  return (
    <dl className={classes.figures}>
      {figures.map(({ name, value, note }, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: see above
        <div key={place}>
          <dt>{name}</dt>
          <dd>
            {value} <span className={classes.note}>{note}</span>
          </dd>
        </div>
      ))}
    </dl>
  );
}
