/** A database's state as a word with a colour; why, on hover. */
import { Badge } from '@mantine/core';
import type { Database } from '../../../../sdk/index.ts';
import { text } from '../../texts/text.ts';

const COLORS: Readonly<Record<Database['state'], string>> = {
  creating: 'yellow',
  ready: 'petrol',
  read_only: 'yellow',
  suspended: 'yellow',
  error: 'red',
  deleting: 'gray',
};

export function DatabaseState({ database: { state, state_reason } }: { database: Database }) {
  return (
    <Badge variant="light" color={COLORS[state]} title={state_reason?.message ?? ''}>
      {text.databases.states[state]}
    </Badge>
  );
}
