/** "Download everything": all of an account as one zip, on its owner's page and for administrators. */
import { Button, Checkbox, Group, Stack } from '@mantine/core';
import { useState } from 'react';
import { text } from '../texts/text.ts';
import { type DownloadTarget, useDownload } from './commands/download.ts';

const words = text.account.takeAlong;

/** `id`: another account, for an administrator; default: the caller's own. */
export function exportTarget(id: number | undefined, disks: boolean): DownloadTarget {
  const query = disks ? { disks } : {};
  return id === undefined ? ['exportAccount', [], query] : ['adminExportAccount', [id], query];
}

interface TakeAlongProps {
  readonly id?: number;
}

/** The button, and the choice whether to include disks of machines. */
export function TakeAlong({ id }: TakeAlongProps) {
  const [disks, setDisks] = useState(false);
  const download = useDownload(...exportTarget(id, disks));
  return (
    <Stack gap="xs" align="flex-start">
      <Group>
        <Button variant="default" loading={download.isPending} onClick={() => download.mutate()}>
          {words.action}
        </Button>
      </Group>
      <Checkbox
        label={words.disks}
        checked={disks}
        onChange={({ currentTarget }) => setDisks(currentTarget.checked)}
      />
    </Stack>
  );
}
