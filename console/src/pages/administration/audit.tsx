/** Shows who did what in the whole cloud. */
import { Stack, Text } from '@mantine/core';
import { auditText } from '../../texts/audit-text.ts';
import { AuditLog } from '../account/audit-log.tsx';

export function Audit() {
  return (
    <Stack>
      <Text c="dimmed">{auditText.adminLead}</Text>
      <AuditLog account="all" />
    </Stack>
  );
}
