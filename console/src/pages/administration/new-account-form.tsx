/** Makes an account for somebody; its key is shown once made. */
import { PasswordInput, Switch, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { cloud } from '../../cloud.ts';
import { CallSample } from '../../parts/call-sample.tsx';
import { FormModal } from '../../parts/form-modal.tsx';
import { text } from '../../texts/text.ts';
import { accountsQuery } from './queries.ts';
import { ShownKey } from './shown-key.tsx';

const NOBODY = { username: '', email: '', password: '', is_admin: false };

export function NewAccountForm({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const { administration } = text;
  const [account, setAccount] = useState(NOBODY);
  const queryClient = useQueryClient();
  const { password, ...rest } = account;
  /** As it is shown to whoever looks over one's shoulder. */
  const sample = password === '' ? rest : { ...account, password: '…' };
  const create = useMutation({
    mutationFn: () => cloud.admin.accounts.create(password === '' ? rest : account),
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
        <CallSample
          call="POST /api/admin/accounts"
          body={sample}
          method="admin.accounts.create"
          args={[sample]}
        />
      </FormModal>
      <ShownKey made={create.data} onClose={() => create.reset()} />
    </>
  );
}
