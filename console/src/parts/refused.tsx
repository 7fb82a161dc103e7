/** A refusal in its place on the page. */
import { Button, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { isSignedOut } from '../queries.ts';
import { text } from '../texts/text.ts';
import { Prose } from './prose.tsx';
import { refusalOf } from './refusal.ts';
import { Warning } from './warning.tsx';

interface RefusedProps {
  readonly error: unknown;
  readonly onRetry?: () => void;
  /** How to go on. */
  readonly children?: ReactNode;
}

export function Refused({ error, onRetry, children }: RefusedProps) {
  // That the session ended is said once, over the page.
  if (error === null || error === undefined || isSignedOut(error)) return null;
  const { title, detail, requestId } = refusalOf(error);
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
