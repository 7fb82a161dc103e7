/** Shows who did what in the whole cloud. */
import { Stack, Text } from '@mantine/core';
import { text } from '../../texts/text.ts';
import { AuditLog } from '../account/audit-log.tsx';

export function Audit() {
  return (
    <Stack>
      <Text c="dimmed">{text.audit.adminLead}</Text>
      <AuditLog account="all" />
    </Stack>
  );
}
