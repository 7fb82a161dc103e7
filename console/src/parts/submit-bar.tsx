/** The end of a long form: what it costs, and its button. In sight wherever one is in the form. */
import { Group, Paper } from '@mantine/core';
import type { ReactNode } from 'react';
import classes from './submit-bar.module.css';

export function SubmitBar({ children }: { children: ReactNode }) {
  return (
    <Paper withBorder px="md" py="sm" className={classes.bar ?? ''}>
      <Group justify="space-between">{children}</Group>
    </Paper>
  );
}
