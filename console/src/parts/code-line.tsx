/** One line, or a few, to be copied. */
import { Group } from '@mantine/core';
import classes from './code-line.module.css';
import { CopyIcon } from './copy.tsx';

export function CodeLine({ value, label }: { value: string; label: string }) {
  return (
    <Group wrap="nowrap" gap="xs" className={classes.line} align="flex-start">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard */}
      <pre className={classes.code} tabIndex={0}>
        {value}
      </pre>
      <CopyIcon value={value} label={label} />
    </Group>
  );
}
