/** One delivery: what is sent, and what each attempt was answered. */
import { Stack, Text } from '@mantine/core';
import type { WebhookDelivery } from '../../../../sdk/index.ts';
import { CodeLine } from '../../parts/code-line.tsx';
import { When } from '../../parts/when.tsx';
import { text } from '../../texts/text.ts';
import classes from './delivery-details.module.css';

const words = text.webhooks;

type Attempt = WebhookDelivery['attempts'][number];

export function DeliveryDetails({ delivery }: { delivery: WebhookDelivery }) {
  const { event_id: eventId, payload, reason, next_attempt_at: next, attempts } = delivery;
  return (
    <Stack gap="xs" className={classes.details ?? ''}>
      <Text size="sm">
        <span className="mono">{eventId}</span>
        {reason !== null && `: ${reason}`}
      </Text>
      <CodeLine value={JSON.stringify(payload, null, 2)} label={words.copyPayload} />
      {attempts.map((attempt) => (
        <Stack key={attempt.at} gap={4}>
          <Text size="sm">
            <When at={attempt.at} />: {sayAttempt(attempt)}
          </Text>
          {attempt.response !== null && attempt.response !== '' && (
            <CodeLine value={attempt.response} label={words.copyResponse} />
          )}
        </Stack>
      ))}
      {next !== null && attempts.length > 0 && (
        <Text size="sm" c="dimmed">
          {words.nextAttempt} <When at={next} />.
        </Text>
      )}
    </Stack>
  );
}

export function sayAttempt({ error, status, duration_ms: ms }: Attempt): string {
  return error ?? words.answered(String(status), String(ms));
}
