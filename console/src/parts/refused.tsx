/** A refusal in its place on the page. */
import { Button, Text } from '@mantine/core';
import { isSignedOut } from '../queries.ts';
import { text } from '../texts/text.ts';
import { Prose } from './prose.tsx';
import { refusalOf } from './refusal.ts';
import { Warning } from './warning.tsx';

export function Refused({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
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
