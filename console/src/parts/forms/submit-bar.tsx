/**
 * The end of a long form: its cost, and the submit button. Visible anywhere in the form; Ctrl or ⌘
 * with Enter presses it, also from multi-line fields.
 */
import { Group, Paper } from '@mantine/core';
import { type ReactNode, useEffect, useRef } from 'react';
import classes from '../parts.module.css';

interface SubmitBarProps {
  /** Shown above the button: why the request would be refused. */
  readonly notice: ReactNode;
  readonly children: ReactNode;
}

export function SubmitBar({ notice, children }: SubmitBarProps) {
  const bar = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const form = bar.current?.closest('form');
    const submit = (event: KeyboardEvent) => {
      if (event.key !== 'Enter' || !(event.metaKey || event.ctrlKey)) return;
      event.preventDefault();
      form?.querySelector<HTMLButtonElement>('[type=submit]:not(:disabled, [data-loading])')?.click();
    };
    form?.addEventListener('keydown', submit);
    return () => form?.removeEventListener('keydown', submit);
  }, []);
  return (
    <Paper ref={bar} withBorder px="md" py="sm" className={classes.submitBar ?? ''}>
      <div className={classes.submitNotice}>{notice}</div>
      <Group justify="space-between">{children}</Group>
    </Paper>
  );
}
