/** What the machine wrote to its serial console. */

import { ArrowPathIcon } from '@heroicons/react/24/outline';
import { Button, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Vm } from '../../../../sdk/index.ts';
import { LogText } from '../../parts/log-text.tsx';
import { Loaded } from '../../parts/page.tsx';
import { text } from '../../texts/text.ts';
import { vmLogQuery } from './queries.ts';

const words = text.machines.log;
const SHORT_BYTES = 64 * 1024;
const WHOLE_BYTES = 2 ** 20;

export function LogTab({ vm }: { vm: Vm }) {
  const [bytes, setBytes] = useState(SHORT_BYTES);
  const log = useQuery(vmLogQuery(vm.vm_id, bytes));
  return (
    <Stack>
      <Group justify="space-between">
        <Text c="dimmed">{words.lead}</Text>
        <Group gap="xs">
          {bytes === SHORT_BYTES && (
            <Button variant="default" onClick={() => setBytes(WHOLE_BYTES)}>
              {words.whole}
            </Button>
          )}
          <Button
            variant="default"
            leftSection={<ArrowPathIcon width={18} />}
            loading={log.isFetching}
            onClick={() => log.refetch()}
          >
            {words.refresh}
          </Button>
        </Group>
      </Group>
      <Loaded query={log}>
        {(written) => (written === '' ? <Text>{words.empty}</Text> : <LogText log={written} />)}
      </Loaded>
    </Stack>
  );
}
