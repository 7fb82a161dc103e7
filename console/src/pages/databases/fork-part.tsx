import { Button, Group, Stack, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { Database } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { CallSample } from '../../parts/call-sample.tsx';
import { showDone } from '../../parts/notices.tsx';
import { fieldError } from '../../parts/refusal.ts';
import { Refused } from '../../parts/refused.tsx';
import { text } from '../../texts/text.ts';
import { Part } from './part.tsx';
import { databasesQuery } from './queries.ts';

const words = text.databases.manage;

/** A second database of it, as of now. */
export function ForkPart({ database }: { database: Database }) {
  const [name, setName] = useState(`${database.name}-copy`);
  const queryClient = useQueryClient();
  const navigate = useNavigate();
  const body = { name, from: { database_id: database.database_id } };
  const fork = useMutation({
    mutationFn: () => cloud.databases.create(body),
    meta: { shown: true },
    onSuccess: async (made) => {
      showDone(words.forked(made.name));
      await navigate({ to: '/databases/$database', params: { database: made.database_id } });
      await queryClient.invalidateQueries({ queryKey: databasesQuery.queryKey });
    },
  });
  const nameError = fieldError(fork.error, 'name');
  return (
    <Part title={words.fork} lead={words.forkLead}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          fork.mutate();
        }}
      >
        <Stack mt="sm">
          <Group align="flex-end">
            <TextInput
              flex={1}
              miw={180}
              label={words.forkName}
              value={name}
              error={nameError}
              spellCheck={false}
              onChange={({ currentTarget }) => setName(currentTarget.value)}
            />
            <Button type="submit" variant="default" loading={fork.isPending}>
              {words.forkSubmit}
            </Button>
          </Group>
          {nameError === undefined && <Refused error={fork.error} />}
          <CallSample call="POST /api/databases" body={body} method="databases.create" args={[body]} />
        </Stack>
      </form>
    </Part>
  );
}
