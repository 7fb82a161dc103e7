/** The whole database as a file, out and in. */
import { Button, FileButton, Progress, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Database } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { showDone } from '../../parts/notices.tsx';
import { text } from '../../texts/text.ts';
import { Part } from './part.tsx';

const words = text.databases.manage;

export function DumpPart({ database }: { database: Database }) {
  return (
    <Part
      title={words.dump}
      lead={words.dumpLead}
      action={
        <Button
          component="a"
          variant="default"
          href={cloud.urlOf('dumpDatabase', [database.database_id])}
          download
        >
          {words.dumpSubmit}
        </Button>
      }
    />
  );
}

export function LoadPart({ database }: { database: Database }) {
  const [file, setFile] = useState<File | null>(null);
  const [percent, setPercent] = useState(0);
  const queryClient = useQueryClient();
  const load = useMutation({
    mutationFn: (chosen: File) =>
      cloud.loadDatabase(
        database.database_id,
        { file: chosen },
        {
          onProgress: (sent, total) => setPercent(Math.floor((sent / total) * 100)),
        },
      ),
    meta: { shown: true },
    onSuccess: async () => {
      setFile(null);
      showDone(words.loaded);
      await queryClient.invalidateQueries({ queryKey: ['databases', database.database_id] });
    },
  });
  const close = () => {
    if (load.isPending) return;
    setFile(null);
    load.reset();
  };
  return (
    <Part
      title={words.load}
      lead={words.loadLead}
      action={
        <FileButton onChange={setFile}>
          {(props) => (
            <Button {...props} variant="default">
              {words.loadChoose}
            </Button>
          )}
        </FileButton>
      }
    >
      <Confirm
        isOpen={file !== null}
        title={words.loadAsk(file?.name ?? '')}
        action={words.loadSubmit}
        isBusy={load.isPending}
        error={load.error}
        onConfirm={() => file !== null && load.mutate(file)}
        onClose={close}
      >
        {words.loadAskLead(database.name)}
        {load.isPending && (
          <>
            <Progress value={percent} mt="sm" aria-label={words.loading(percent)} />
            <Text size="xs" c="dimmed">
              {words.loading(percent)}
            </Text>
          </>
        )}
      </Confirm>
    </Part>
  );
}
