/** A line for each resource of an action for many: its name, and the outcome once there is one. */
import type { Key, ReactNode } from 'react';
import { listsText as words } from '../../texts/lists-text.ts';
import classes from './outcome-list.module.css';
import type { Outcomes } from './use-many.ts';

interface OutcomeListProps<Item> {
  /** Name of the list for screen readers. */
  readonly label: string;
  readonly items: readonly Item[];
  readonly keyOf: (item: Item) => Key;
  readonly nameOf: (item: Item) => string;
  readonly outcomes: Outcomes;
  /** Shown before the name of an item that is not done. */
  readonly before?: (item: Item) => ReactNode;
}

/** Lines of thousands would keep the page busy: the refused ones are shown, and the first others. */
const MOST_LINES = 100;

export function OutcomeList<Item>(props: OutcomeListProps<Item>) {
  const { label, items, keyOf, nameOf, outcomes, before } = props;
  const shown = items.length > MOST_LINES ? refusedFirst(props) : items;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and may contain no button
    <ul aria-label={label} tabIndex={0} className={classes.outcomes}>
      {shown.map((item) => {
        const outcome = outcomes.get(keyOf(item));
        return (
          <li key={keyOf(item)}>
            {outcome !== 'done' && before?.(item)}
            <b>{nameOf(item)}</b>
            {outcome === 'done' && <span>{words.done}</span>}
            {typeof outcome === 'object' && <span data-refused>{outcome.refusal}</span>}
          </li>
        );
      })}
      {items.length > shown.length && <li data-more>{words.andMore(items.length - shown.length)}</li>}
    </ul>
  );
}

/** At most as many as are shown: refused ones first. */
function refusedFirst<Item>({ items, keyOf, outcomes }: OutcomeListProps<Item>): readonly Item[] {
  const isRefused = (item: Item) => typeof outcomes.get(keyOf(item)) === 'object';
  const refused = items.filter(isRefused).slice(0, MOST_LINES);
  const left = MOST_LINES - refused.length;
  return [...refused, ...items.filter((item) => !isRefused(item)).slice(0, left)];
}
