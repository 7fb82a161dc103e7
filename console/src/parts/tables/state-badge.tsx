/** The state of a resource as a word, with the reason on hover: any, a machine, a database. */
import type { Database, Vm } from '../../../../sdk/index.ts';
import { text } from '../../texts/text.ts';
import classes from '../parts.module.css';

export type Tone = 'good' | 'moving' | 'bad' | 'quiet';

interface StateBadgeProps {
  readonly tone: Tone;
  readonly word: string;
  readonly reason?: string | undefined;
}

export function StateBadge({ tone, word, reason }: StateBadgeProps) {
  return (
    <span className={classes.badge} data-tone={tone} title={reason}>
      {word}
    </span>
  );
}

const VM_TONES: Readonly<Record<Vm['state'], Tone>> = {
  created: 'quiet',
  starting: 'moving',
  running: 'good',
  stopping: 'moving',
  stopped: 'quiet',
  error: 'bad',
  deleting: 'quiet',
};

export function VmState({ vm: { state, state_reason, ready_at } }: { vm: Vm }) {
  const reason = state_reason?.message;
  if (state === 'running' && ready_at === null) {
    return <StateBadge tone="moving" word={text.machines.booting} reason={reason} />;
  }
  return <StateBadge tone={VM_TONES[state]} word={text.machines.states[state]} reason={reason} />;
}

const DATABASE_TONES: Readonly<Record<Database['state'], Tone>> = {
  creating: 'moving',
  ready: 'good',
  read_only: 'moving',
  suspended: 'moving',
  error: 'bad',
  deleting: 'quiet',
};

export function DatabaseState({ database: { state, state_reason } }: { database: Database }) {
  return (
    <StateBadge
      tone={DATABASE_TONES[state]}
      word={text.databases.states[state]}
      reason={state_reason?.message}
    />
  );
}
