/** What should be looked at soon, in its place on the page. */
import { Alert } from '@mantine/core';
import type { ReactNode } from 'react';
import classes from './warning.module.css';

export function Warning({ title, children }: { title?: string; children?: ReactNode }) {
  return (
    <Alert title={title} className={classes.warning ?? ''}>
      {children}
    </Alert>
  );
}

/** Why a thing is in the state it is in. */
export function StateReason({ isError, children }: { isError: boolean; children: ReactNode }) {
  return isError ? <Alert color="red">{children}</Alert> : <Warning>{children}</Warning>;
}
