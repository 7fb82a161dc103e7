/** The state of a thing as a word; why it is so, on hover. */
import classes from './state-badge.module.css';

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
