/** A warning or an error in its place on the page. */
import { Alert } from '@mantine/core';
import type { ReactNode } from 'react';
import classes from './warning.module.css';

interface WarningProps {
  readonly title?: ReactNode;
  readonly isError?: boolean;
  /** `alert`: read out at once. */
  readonly role?: 'alert';
  readonly children?: ReactNode;
}

export function Warning({ title, isError = false, role, children }: WarningProps) {
  return (
    <Alert title={title} role={role} className={classes.warning ?? ''} data-error={isError}>
      {children}
    </Alert>
  );
}
