/** Displayed code: a line to copy, shown in full, or several, which scroll; and inline code. */
import { Code, Group } from '@mantine/core';
import { Fragment } from 'react';
import classes from '../parts.module.css';
import { CopyIcon } from './copy.tsx';

interface CodeLineProps {
  readonly value: string;
  /** Shown instead of a secret value. */
  readonly shown?: string;
  readonly label: string;
}

export function CodeLine({ value, shown = value, label }: CodeLineProps) {
  return (
    <Group wrap="nowrap" gap="xs" className={classes.codeLine ?? ''} align="flex-start">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard */}
      <pre className={classes.code} data-one-line={!shown.includes('\n')} tabIndex={0}>
        {shown}
      </pre>
      <CopyIcon value={value} label={label} />
    </Group>
  );
}

/** Text of the cloud: words between backticks are shown as code. */
export function Prose({ children }: { children: string }) {
  // Every second part is in backticks; a single backtick stays.
  return children.split(/`([^`\n]+)`/).map((part, index) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: parts of a text have no other name, and never move
    index % 2 === 1 ? <Code key={index}>{part}</Code> : <Fragment key={index}>{part}</Fragment>,
  );
}
