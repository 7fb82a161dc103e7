import { Button, Group, NumberInput, Stack, Switch, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Database, DatabaseChange } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { CallSample } from '../../parts/call-sample.tsx';
import { showDone } from '../../parts/notices.tsx';
import { fieldError } from '../../parts/refusal.ts';
import { Refused } from '../../parts/refused.tsx';
import { text } from '../../texts/text.ts';
import { Part } from './part.tsx';
import { databasesQuery } from './queries.ts';

const words = text.databases.manage;

/** Name, size limit, protection. */
export function SettingsPart({ database }: { database: Database }) {
  const [name, setName] = useState(database.name);
  const [limit, setLimit] = useState(database.size_limit_mb);
  const queryClient = useQueryClient();
  const change = useMutation({
    mutationFn: (body: DatabaseChange) => cloud.databases.change(database.database_id, body),
    meta: { shown: true },
    onSuccess: async () => {
      showDone(words.saved);
      await queryClient.invalidateQueries({ queryKey: databasesQuery.queryKey });
    },
  });
  const body = {
    ...(name === database.name ? {} : { name }),
    ...(limit === database.size_limit_mb ? {} : { size_limit_mb: limit }),
  };
  const [nameError, limitError] = ['name', 'size_limit_mb'].map((field) => fieldError(change.error, field));
  return (
    <Part title={words.rename}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          change.mutate(body);
        }}
      >
        <Stack mt="sm">
          <Group align="flex-end">
            <TextInput
              flex={1}
              miw={180}
              label={text.databases.name}
              value={name}
              error={nameError}
              spellCheck={false}
              onChange={({ currentTarget }) => setName(currentTarget.value)}
            />
            <NumberInput
              flex={1}
              miw={180}
              label={text.databases.form.sizeLimit}
              value={limit}
              min={1}
              error={limitError}
              thousandSeparator=","
              onChange={(value) => setLimit(Number(value) || database.size_limit_mb)}
            />
            <Button
              type="submit"
              variant="default"
              loading={change.isPending}
              disabled={name === database.name && limit === database.size_limit_mb}
            >
              {words.save}
            </Button>
          </Group>
          <Switch
            label={words.protection}
            description={words.protectionLead}
            checked={database.delete_protection}
            onChange={({ currentTarget }) => change.mutate({ delete_protection: currentTarget.checked })}
          />
          {nameError === undefined && limitError === undefined && <Refused error={change.error} />}
          <CallSample
            call="PATCH /api/databases/{database_id}"
            params={{ database_id: database.database_id }}
            body={body}
            method="databases.change"
            args={[database.database_id, body]}
          />
        </Stack>
      </form>
    </Part>
  );
}
