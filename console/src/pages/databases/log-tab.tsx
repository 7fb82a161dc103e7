/** What the server told of a database last. */

import { ArrowPathIcon } from '@heroicons/react/24/outline';
import { Button, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Database } from '../../../../sdk/index.ts';
import { LogText } from '../../parts/log-text.tsx';
import { Loaded } from '../../parts/page.tsx';
import { text } from '../../texts/text.ts';
import { logQuery } from './queries.ts';

const words = text.databases.log;

export function LogTab({ database }: { database: Database }) {
  const log = useQuery(logQuery(database.database_id));
  return (
    <Stack>
      <Group justify="space-between">
        <Text c="dimmed">{words.lead}</Text>
        <Button
          variant="default"
          leftSection={<ArrowPathIcon width={18} />}
          loading={log.isFetching}
          onClick={() => log.refetch()}
        >
          {words.refresh}
        </Button>
      </Group>
      <Loaded query={log}>
        {(told) => (told === '' ? <Text>{words.empty}</Text> : <LogText log={told} />)}
      </Loaded>
    </Stack>
  );
}
