/** A line of code, which is shown whole, or a few, which scroll; to be copied. */
import { Group } from '@mantine/core';
import classes from './code-line.module.css';
import { CopyIcon } from './copy.tsx';

interface CodeLineProps {
  readonly value: string;
  /** Shown in place of a secret value. */
  readonly shown?: string;
  readonly label: string;
}

export function CodeLine({ value, shown = value, label }: CodeLineProps) {
  return (
    <Group wrap="nowrap" gap="xs" className={classes.line ?? ''} align="flex-start">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard */}
      <pre className={classes.code} data-one-line={!shown.includes('\n')} tabIndex={0}>
        {shown}
      </pre>
      <CopyIcon value={value} label={label} />
    </Group>
  );
}
