/** Form for a new webhook, or to change one. */

import { MultiSelect, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { NewWebhook, Webhook } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { CallSample } from '../../parts/commands/call-sample.tsx';
import { FormModal } from '../../parts/forms/dialog.tsx';
import { accountQuery } from '../../queries.ts';
import { webhooksText } from '../../texts/pages/webhooks-text.ts';
import { webhooksQuery } from './queries.ts';

const words = webhooksText;
const EVENTS = [
  ...['*', 'bucket.objects_expired', 'credits.low', 'credits.exhausted', 'credits.restored'],
  ...['billing.spend_warning', 'billing.spend_cap_reached', 'billing.spend_cap_lifted'],
  ...['database.created', 'database.deleted', 'database.failed', 'database.read_only', 'database.resumed'],
  ...['audit.*', 'audit.done', 'audit.refused', 'audit.failed'],
  ...['database.suspended', 'vm.started', 'vm.stopped', 'vm.failed', 'vm.deleted'],
];
/** Only webhooks of administrators get these events. */
const OF_POINTS = ['created', 'completed', 'verified', 'failed', 'damaged', 'deleted'];
const OF_DRILLS = ['drilled', 'drill_failed', 'drill_skipped'];
const OF_RECOVERY = [
  ...['recovery.alarm_raised', 'recovery.alarm_cleared'],
  ...[...OF_POINTS, ...OF_DRILLS].map((what) => `recovery_point.${what}`),
];

interface WebhookFormProps {
  /** undefined: creates a new one. */
  readonly present?: Webhook;
  readonly onClose: () => void;
  readonly onMade?: (id: string) => void;
}

export function WebhookForm({ present, onClose, onMade }: WebhookFormProps) {
  const { data: account } = useQuery(accountQuery);
  const form = useCloudForm({
    values: { url: present?.url ?? '', events: [...(present?.events ?? ['*'])] as string[] },
    send: (values) => {
      const webhook = values as NewWebhook;
      return present === undefined ? cloud.createWebhook(webhook) : cloud.changeWebhook(present.id, webhook);
    },
    invalidates: [webhooksQuery],
    onDone: ({ id }) => {
      onClose();
      onMade?.(id);
    },
  });
  return (
    <FormModal
      isOpen
      title={present === undefined ? words.create : words.editTitle}
      action={present === undefined ? words.create : words.save}
      form={form}
      onClose={onClose}
    >
      <TextInput
        data-autofocus
        label={words.address}
        placeholder="https://example.com/hook"
        required
        withAsterisk={false}
        spellCheck={false}
        {...form.text('url')}
      />
      <MultiSelect
        label={words.events}
        description={words.eventsLead}
        data={account?.is_admin === true ? [...EVENTS, ...OF_RECOVERY] : EVENTS}
        {...form.of('events')}
      />
      {present === undefined ? (
        <CallSample operation="createWebhook" args={[form.values]} />
      ) : (
        <CallSample operation="changeWebhook" args={[present.id, form.values]} />
      )}
    </FormModal>
  );
}
