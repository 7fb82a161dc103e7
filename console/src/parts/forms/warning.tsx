/** A warning or an error within the page. */
import { Alert, Button, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { isSignedOut } from '../../queries.ts';
import { text } from '../../texts/text.ts';
import { Prose } from '../commands/code.tsx';
import classes from '../parts.module.css';
import { besideFields } from './refusal.ts';

interface WarningProps {
  readonly title?: ReactNode;
  readonly isError?: boolean;
  /** `alert`: announced immediately. */
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

interface RefusedProps {
  readonly error: unknown;
  readonly onRetry?: () => void;
  /** Members whose error a form field shows: only the rest is shown here. */
  readonly atFields?: ReadonlySet<string>;
  /** The next step for the user. */
  readonly children?: ReactNode;
}

const NO_FIELDS: ReadonlySet<string> = new Set();

export function Refused({ error, onRetry, atFields = NO_FIELDS, children }: RefusedProps) {
  // The end of the session is shown once, over the page.
  if (error === null || error === undefined || isSignedOut(error)) return null;
  const refusal = besideFields(error, atFields);
  if (refusal === null) return null;
  const { title, detail, requestId } = refusal;
  return (
    <Warning isError title={<Prose>{title}</Prose>} role="alert">
      {detail !== '' && (
        <Text size="sm">
          <Prose>{detail}</Prose>
        </Text>
      )}
      {children}
      {requestId !== undefined && (
        <Text size="xs" c="dimmed" className="mono">
          {requestId}
        </Text>
      )}
      {onRetry !== undefined && (
        <Button size="compact-sm" variant="default" mt="xs" onClick={onRetry}>
          {text.shell.retry}
        </Button>
      )}
    </Warning>
  );
}
