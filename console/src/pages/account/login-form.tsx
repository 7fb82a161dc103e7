/** E-mail address and password. */

import { Button, PasswordInput, Stack, TextInput, Title } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { CloudError } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { showDone } from '../../parts/notices.tsx';
import { fieldError } from '../../parts/refusal.ts';
import { Refused } from '../../parts/warning.tsx';
import { accountQuery } from '../../queries.ts';
import { text } from '../../texts/text.ts';

const UNCHANGED = { email: undefined as string | undefined, password: '', current: '' };

export function LoginForm() {
  const { account, fields, setFields, change } = useChange();
  const { email, password, current } = fields;
  const isWrong = change.error instanceof CloudError && change.error.code === 'invalid_credentials';
  return (
    <section aria-labelledby="login">
      <Title order={2} id="login" mb="xs">
        {text.account.login}
      </Title>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          change.mutate();
        }}
      >
        <Stack maw={420}>
          <TextInput
            label={text.door.email}
            type="email"
            autoComplete="email"
            value={email ?? account?.email ?? ''}
            error={fieldError(change.error, 'email')}
            onChange={({ currentTarget }) => setFields({ ...fields, email: currentTarget.value })}
          />
          <PasswordInput
            label={text.account.newPassword}
            description={text.account.newPasswordLead}
            autoComplete="new-password"
            value={password}
            error={fieldError(change.error, 'password')}
            onChange={({ currentTarget }) => setFields({ ...fields, password: currentTarget.value })}
          />
          {password !== '' && (
            <PasswordInput
              label={text.account.currentPassword}
              autoComplete="current-password"
              required
              withAsterisk={false}
              value={current}
              error={isWrong ? text.account.currentWrong : undefined}
              onChange={({ currentTarget }) => setFields({ ...fields, current: currentTarget.value })}
            />
          )}
          {!isWrong && <Refused error={change.error} />}
          <div>
            <Button
              type="submit"
              loading={change.isPending}
              disabled={email === undefined && password === ''}
            >
              {text.account.save}
            </Button>
          </div>
        </Stack>
      </form>
    </section>
  );
}

/** The typed fields, and the call that saves them. */
function useChange() {
  const { data: account } = useQuery(accountQuery);
  const [fields, setFields] = useState(UNCHANGED);
  const { email, password, current } = fields;
  const queryClient = useQueryClient();
  const change = useMutation({
    mutationFn: () =>
      cloud.updateAccount({
        ...(email === undefined ? {} : { email }),
        ...(password === '' ? {} : { password, current_password: current }),
      }),
    meta: { shown: true },
    onSuccess: async (changed) => {
      setFields(UNCHANGED);
      showDone(text.account.saved);
      queryClient.setQueryData(accountQuery.queryKey, changed);
    },
  });
  return { account, fields, setFields, change };
}
