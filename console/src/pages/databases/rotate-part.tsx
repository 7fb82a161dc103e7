import { Button, Group, Stack, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Database } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { CodeLine } from '../../parts/code-line.tsx';
import { Confirm } from '../../parts/confirm.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { text } from '../../texts/text.ts';
import { Part } from './part.tsx';
import { credentialsQuery } from './queries.ts';

const words = text.databases.manage;

/** Another password; the connection string with it is shown at once. */
export function RotatePart({ database: { database_id: id, name } }: { database: Database }) {
  const [isAsked, setAsked] = useState(false);
  const [uri, setUri] = useState<string | null>(null);
  const queryClient = useQueryClient();
  const rotate = useMutation({
    mutationFn: () => cloud.databases.rotateCredentials(id),
    meta: { shown: true },
    onSuccess: async ({ connection }) => {
      setAsked(false);
      setUri(connection.uri);
      await queryClient.invalidateQueries({ queryKey: credentialsQuery(id).queryKey });
    },
  });
  return (
    <Part
      title={words.rotate}
      lead={words.rotateLead}
      action={
        <Button variant="default" onClick={() => setAsked(true)}>
          {words.rotateSubmit}
        </Button>
      }
    >
      <Confirm
        isOpen={isAsked}
        title={words.rotateAsk(name)}
        action={words.rotateSubmit}
        isBusy={rotate.isPending}
        error={rotate.error}
        onConfirm={() => rotate.mutate()}
        onClose={() => setAsked(false)}
      >
        {words.rotateAskLead}
      </Confirm>
      <Dialog opened={uri !== null} onClose={() => setUri(null)} title={words.rotated} size="lg">
        <Stack>
          <Text size="sm">{words.rotatedLead}</Text>
          <CodeLine value={uri ?? ''} label={text.databases.connect.copyUri} />
          <Group justify="flex-end">
            <Button onClick={() => setUri(null)}>{words.done}</Button>
          </Group>
        </Stack>
      </Dialog>
    </Part>
  );
}
