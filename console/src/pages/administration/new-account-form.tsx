/** Makes an account for somebody; its key is shown once made. */
import { PasswordInput, Stack, Switch, Text, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { cloud } from '../../cloud.ts';
import { CodeLine } from '../../parts/code-line.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { FormModal } from '../../parts/form-modal.tsx';
import { text } from '../../texts/text.ts';
import { accountsQuery } from './queries.ts';

const NOBODY = { username: '', email: '', password: '', is_admin: false };

export function NewAccountForm({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const { administration } = text;
  const [account, setAccount] = useState(NOBODY);
  const queryClient = useQueryClient();
  const create = useMutation({
    mutationFn: () => {
      const { password, ...rest } = account;
      return cloud.admin.accounts.create(password === '' ? rest : account);
    },
    meta: { shown: true },
    onSuccess: async () => {
      onClose();
      setAccount(NOBODY);
      await queryClient.invalidateQueries({ queryKey: accountsQuery.queryKey });
    },
  });
  const field = (name: 'username' | 'email') => ({
    value: account[name],
    required: true,
    withAsterisk: false,
    spellCheck: false,
    onChange: ({ currentTarget }: { currentTarget: { value: string } }) =>
      setAccount({ ...account, [name]: currentTarget.value }),
  });
  return (
    <>
      <FormModal
        isOpen={isOpen}
        title={administration.createAccount}
        action={administration.createAccount}
        isBusy={create.isPending}
        error={create.error}
        onSubmit={() => create.mutate()}
        onClose={onClose}
      >
        <TextInput data-autofocus label={administration.username} {...field('username')} />
        <TextInput type="email" label={administration.email} {...field('email')} />
        <PasswordInput
          label={administration.password}
          description={administration.passwordLead}
          autoComplete="new-password"
          value={account.password}
          onChange={({ currentTarget }) => setAccount({ ...account, password: currentTarget.value })}
        />
        <Switch
          label={administration.administrator}
          description={administration.administratorLead}
          checked={account.is_admin}
          onChange={({ currentTarget }) => setAccount({ ...account, is_admin: currentTarget.checked })}
        />
      </FormModal>
      <Dialog
        opened={typeof create.data?.api_key === 'string'}
        onClose={() => create.reset()}
        title={administration.apiKey}
      >
        <Stack>
          <Text size="sm">{administration.apiKeyLead(create.data?.username ?? '')}</Text>
          <CodeLine value={create.data?.api_key ?? ''} label={administration.copyKey} />
        </Stack>
      </Dialog>
    </>
  );
}
