import { Button } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { Database } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { showDone } from '../../parts/notices.tsx';
import { text } from '../../texts/text.ts';
import { Part } from './part.tsx';

const words = text.databases.manage;

/** The way out when its sessions hold all of its server. */
export function RestartPart({ database: { database_id: id, engine } }: { database: Database }) {
  const [isAsked, setAsked] = useState(false);
  const restart = useMutation({
    mutationFn: () => cloud.databases.restart(id),
    meta: { shown: true },
    onSuccess: () => {
      setAsked(false);
      showDone(words.restarted);
    },
  });
  const isShared = engine === 'postgresql' || engine === 'mysql';
  return (
    <Part
      title={words.restart}
      lead={isShared ? words.restartLeadShared : words.restartLead}
      action={
        <Button variant="default" onClick={() => setAsked(true)}>
          {words.restartSubmit}
        </Button>
      }
    >
      <Confirm
        isOpen={isAsked}
        title={words.restartAsk}
        action={words.restartSubmit}
        isBusy={restart.isPending}
        error={restart.error}
        onConfirm={() => restart.mutate()}
        onClose={() => setAsked(false)}
      >
        {isShared ? words.restartLeadShared : words.restartLead}
      </Confirm>
    </Part>
  );
}
