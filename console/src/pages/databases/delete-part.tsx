import { Button, Checkbox } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { Database } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { showDone, showRefusal } from '../../parts/notices.tsx';
import { text } from '../../texts/text.ts';
import { Part } from './part.tsx';
import { databasesQuery, keptDatabasesQuery } from './queries.ts';

const words = text.databases.manage;

/** Deletes it; the message of it has an Undo for as long as a dump is kept. */
export function DeletePart({ database: { database_id: id, name } }: { database: Database }) {
  const [isAsked, setAsked] = useState(false);
  const [isKept, setKept] = useState(true);
  const queryClient = useQueryClient();
  const navigate = useNavigate();
  /** The two lists; the page of what is gone is not asked for again. */
  const refresh = () =>
    Promise.all(
      [databasesQuery, keptDatabasesQuery].map(({ queryKey }) =>
        queryClient.invalidateQueries({ queryKey, exact: true }),
      ),
    );
  const undo = () =>
    cloud.databases
      .undelete(id)
      .then(() => showDone(text.databases.kept.restored(name)))
      .catch(showRefusal)
      .finally(refresh);
  const remove = useMutation({
    mutationFn: () => cloud.databases.delete(id, { keep: isKept }),
    meta: { shown: true },
    onSuccess: async ({ deletes_at }) => {
      showDone(words.deleted(name), deletes_at === null ? undefined : undo);
      await navigate({ to: '/databases' });
      await refresh();
    },
  });
  return (
    <Part
      title={words.delete}
      lead={words.deleteLead}
      action={
        <Button variant="default" c="var(--wrong)" onClick={() => setAsked(true)}>
          {words.deleteSubmit}
        </Button>
      }
    >
      <Confirm
        isOpen={isAsked}
        title={words.deleteAsk(name)}
        action={words.deleteSubmit}
        isBusy={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate()}
        onClose={() => setAsked(false)}
      >
        {words.deleteAskLead}
        <Checkbox
          mt="sm"
          label={words.deleteForGood}
          checked={!isKept}
          onChange={({ currentTarget }) => setKept(!currentTarget.checked)}
        />
      </Confirm>
    </Part>
  );
}
