/** A line for each resource of an action for many: its name, and the outcome once there is one. */
import { Group, Stack, Text } from '@mantine/core';
import type { Key, ReactNode } from 'react';
import { listsText as words } from '../../texts/lists-text.ts';
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

/**
 * Number of rows of the whole list, of which these are the first; if given, each row announces its number.
 */
const MOST_LINES = 200;

export function OutcomeList<Item>(props: OutcomeListProps<Item>) {
  const { label, items, keyOf, nameOf, outcomes, before } = props;
  const shown = items.length > MOST_LINES ? refusedFirst(props) : items;
  return (
    // It scrolls and may contain no button, so it must be focusable for the keyboard.
    <Stack
      component="ul"
      aria-label={label}
      tabIndex={0}
      gap={4}
      p={0}
      m={0}
      mah="40vh"
      style={{ overflowY: 'auto', listStyle: 'none' }}
    >
      {shown.map((item) => {
        const outcome = outcomes.get(keyOf(item));
        return (
          <Group component="li" key={keyOf(item)} gap="xs" wrap="nowrap" align="flex-start" mih={28}>
            {outcome !== 'done' && before?.(item)}
            <Text size="sm" fw={550} style={{ overflowWrap: 'anywhere' }}>
              {nameOf(item)}
            </Text>
            {outcome === 'done' && <Text size="sm">{words.done}</Text>}
            {typeof outcome === 'object' && (
              <Text size="sm" c="var(--wrong)" style={{ overflowWrap: 'anywhere' }}>
                {outcome.refusal}
              </Text>
            )}
          </Group>
        );
      })}
      {items.length > shown.length && (
        <Text component="li" size="sm" c="dimmed">
          {words.andMore(items.length - shown.length)}
        </Text>
      )}
    </Stack>
  );
}

/** At most as many as are shown: refused ones first. */
function refusedFirst<Item>({ items, keyOf, outcomes }: OutcomeListProps<Item>): readonly Item[] {
  const isRefused = (item: Item) => typeof outcomes.get(keyOf(item)) === 'object';
  const refused = items.filter(isRefused).slice(0, MOST_LINES);
  const left = MOST_LINES - refused.length;
  return [...refused, ...items.filter((item) => !isRefused(item)).slice(0, left)];
}
