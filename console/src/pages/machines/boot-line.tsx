/** The newest line of the console while a machine boots. */
import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Vm } from '../../../../sdk/index.ts';
import { wordsOfLog } from '../../parts/log-view.tsx';
import { machineText } from '../../texts/machine-text.ts';
import { vmLogQuery } from './queries.ts';

const TAIL_BYTES = 4096;
const FOLLOW_MS = 1000;

export function BootLine({ vm }: { vm: Vm }) {
  const log = useQuery({ ...vmLogQuery(vm.vm_id, TAIL_BYTES), refetchInterval: FOLLOW_MS });
  const lines = wordsOfLog(log.data ?? '').split('\n');
  const line = lines.findLast((one) => one.trim() !== '');
  return (
    <Text
      component="span"
      role="note"
      display="block"
      size="sm"
      className="mono"
      truncate
      aria-label={machineText.boot}
    >
      {line?.trim() ?? machineText.noLine}
    </Text>
  );
}
