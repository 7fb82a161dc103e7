/** What the machine wrote to its serial console. */
import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Vm } from '../../../../sdk/index.ts';
import { LogView } from '../../parts/log-view.tsx';
import { text } from '../../texts/text.ts';
import { vmLogQuery, WITH_CONSOLE } from './queries.ts';

const words = text.machines.log;
const SHORT_BYTES = 64 * 1024;
const WHOLE_BYTES = 2 ** 20;

export function LogTab({ vm }: { vm: Vm }) {
  const [bytes, setBytes] = useState(SHORT_BYTES);
  const log = useQuery(vmLogQuery(vm.vm_id, bytes));
  return (
    <LogView
      query={log}
      lead={words.lead}
      empty={words.empty}
      fileName={`${vm.name}.log`}
      isLive={WITH_CONSOLE.includes(vm.state)}
    >
      {bytes === SHORT_BYTES && (log.data?.length ?? 0) >= SHORT_BYTES / 2 && (
        <Button variant="default" onClick={() => setBytes(WHOLE_BYTES)}>
          {words.whole}
        </Button>
      )}
    </LogView>
  );
}
