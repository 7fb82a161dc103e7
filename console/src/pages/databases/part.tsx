/** One thing that can be done with a database: what it is called, what it means, and its button. */
import { Group, Paper, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';

interface PartProps {
  readonly title: string;
  readonly lead?: string;
  /** At the right. */
  readonly action?: ReactNode;
  readonly children?: ReactNode;
}

export function Part({ title, lead, action, children }: PartProps) {
  return (
    <Paper withBorder p="md" component="section">
      <Group justify="space-between" gap="md">
        <div>
          <Title order={2}>{title}</Title>
          {lead !== undefined && (
            <Text size="sm" c="dimmed" maw="56ch">
              {lead}
            </Text>
          )}
        </div>
        {action}
      </Group>
      {children}
    </Paper>
  );
}
