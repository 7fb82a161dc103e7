/** A machine's state as a word. */
import type { Vm } from '../../../../sdk/index.ts';
import { StateBadge, type Tone } from '../../parts/state-badge.tsx';
import { text } from '../../texts/text.ts';

const TONES: Readonly<Record<Vm['state'], Tone>> = {
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
  return <StateBadge tone={TONES[state]} word={text.machines.states[state]} reason={reason} />;
}
