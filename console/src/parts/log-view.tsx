/** A log as a page shows it: its end, read again at will, and saved as a file. */
import { ArrowDownTrayIcon, ArrowPathIcon } from '@heroicons/react/24/outline';
import { Button, Group, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { text } from '../texts/text.ts';
import { LogText, wordsOfLog } from './log-text.tsx';
import { Loaded, type Read } from './page.tsx';
import { saveText } from './save.ts';

interface LogViewProps {
  readonly query: Read<string> & { readonly isFetching: boolean };
  readonly lead: string;
  /** In place of a log that has nothing. */
  readonly empty: string;
  readonly fileName: string;
  /** More buttons. */
  readonly children?: ReactNode;
}

const words = text.shell.log;

export function LogView({ query, lead, empty, fileName, children }: LogViewProps) {
  const { data: log = '' } = query;
  return (
    <Stack>
      <Group justify="space-between">
        <Text c="dimmed">{lead}</Text>
        <Group gap="xs">
          {children}
          <Button
            variant="default"
            leftSection={<ArrowDownTrayIcon width={16} />}
            disabled={log === ''}
            onClick={() => saveText({ name: fileName, type: 'text/plain', content: wordsOfLog(log) })}
          >
            {words.download}
          </Button>
          <Button
            variant="default"
            leftSection={<ArrowPathIcon width={16} />}
            loading={query.isFetching}
            onClick={() => query.refetch()}
          >
            {words.refresh}
          </Button>
        </Group>
      </Group>
      <Loaded query={query}>
        {(written) => (written === '' ? <Text>{empty}</Text> : <LogText log={written} />)}
      </Loaded>
    </Stack>
  );
}
