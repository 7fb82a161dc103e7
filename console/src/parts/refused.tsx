/** A refusal in its place on the page. */
import { Button, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { isSignedOut } from '../queries.ts';
import { text } from '../texts/text.ts';
import { Prose } from './prose.tsx';
import { besideFields } from './refusal.ts';
import { Warning } from './warning.tsx';

interface RefusedProps {
  readonly error: unknown;
  readonly onRetry?: () => void;
  /** Members that have their error at a field of the form: only what else is wrong is said here. */
  readonly atFields?: readonly string[];
  /** How to go on. */
  readonly children?: ReactNode;
}

export function Refused({ error, onRetry, atFields = [], children }: RefusedProps) {
  // The end of the session is said once, over the page.
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
