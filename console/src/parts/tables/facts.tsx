/** Names and values of a resource; and a few important numbers, in large type. */

import type { ReactNode } from 'react';
import classes from '../parts.module.css';

export interface Fact {
  readonly name: string;
  readonly value: ReactNode;
}

interface FactsProps {
  readonly facts: readonly Fact[];
  /** Values are long. */
  readonly isWide?: boolean;
}

export function Facts({ facts, isWide = false }: FactsProps) {
  return (
    <dl className={classes.facts} data-wide={isWide}>
      {facts.map(({ name, value }) => (
        <div key={name} className={classes.fact}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

interface LargeFigure {
  /** A label, or a link to the source. */
  readonly name: ReactNode;
  readonly value: ReactNode;
  /** Small, below the value. */
  readonly note?: ReactNode;
}

/** Names are identified by index: the order of a list of facts never changes. */
export function Figures({ figures }: { figures: readonly LargeFigure[] }) {
  return (
    <dl className={classes.figures}>
      {figures.map(({ name, value, note }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: see above
        <div key={index}>
          <dt>{name}</dt>
          <dd>
            {value} <span className={classes.figureNote}>{note}</span>
          </dd>
        </div>
      ))}
    </dl>
  );
}
