/** E-mail address and password. */
import { Button, PasswordInput, Stack, TextInput, Title } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type Account, CloudError } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { Refused } from '../../parts/forms/warning.tsx';
import { showDone } from '../../parts/notices.tsx';
import { accountQuery } from '../../queries.ts';
import { text } from '../../texts/text.ts';

export function LoginForm() {
  const { data: account } = useQuery(accountQuery);
  return (
    <section aria-labelledby="login">
      <Title order={2} id="login" mb="xs">
        {text.account.login}
      </Title>
      {account !== undefined && <Fields key={account.email} account={account} />}
    </section>
  );
}

function Fields({ account }: { account: Account }) {
  const queryClient = useQueryClient();
  const form = useCloudForm({
    values: { email: account.email, password: '', current_password: '' },
    send: ({ email, password, current_password }) =>
      cloud.updateAccount({
        ...(email === account.email ? {} : { email }),
        ...(password === '' ? {} : { password, current_password }),
      }),
    onDone: (changed) => {
      form.set({ password: '', current_password: '' });
      showDone(text.account.saved);
      queryClient.setQueryData(accountQuery.queryKey, changed);
    },
  });
  const { email, password } = form.values;
  const { error } = form.refusal;
  const isWrong = error instanceof CloudError && error.code === 'invalid_credentials';
  return (
    <form onSubmit={form.submit}>
      <Stack maw={420}>
        <TextInput label={text.signIn.email} type="email" autoComplete="email" {...form.text('email')} />
        <PasswordInput
          label={text.account.newPassword}
          description={text.account.newPasswordLead}
          autoComplete="new-password"
          {...form.text('password')}
        />
        {password !== '' && (
          <PasswordInput
            label={text.account.currentPassword}
            autoComplete="current-password"
            required
            withAsterisk={false}
            {...form.text('current_password')}
            {...(isWrong ? { error: text.account.currentWrong } : {})}
          />
        )}
        {!isWrong && <Refused {...form.refusal} />}
        <div>
          <Button type="submit" loading={form.isBusy} disabled={email === account.email && password === ''}>
            {text.account.save}
          </Button>
        </div>
      </Stack>
    </form>
  );
}
