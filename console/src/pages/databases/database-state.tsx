/** A database's state as a word. */
import type { Database } from '../../../../sdk/index.ts';
import { StateBadge, type Tone } from '../../parts/state-badge.tsx';
import { text } from '../../texts/text.ts';

const TONES: Readonly<Record<Database['state'], Tone>> = {
  creating: 'moving',
  ready: 'good',
  read_only: 'moving',
  suspended: 'moving',
  error: 'bad',
  deleting: 'quiet',
};

export function DatabaseState({ database: { state, state_reason } }: { database: Database }) {
  return (
    <StateBadge tone={TONES[state]} word={text.databases.states[state]} reason={state_reason?.message} />
  );
}
