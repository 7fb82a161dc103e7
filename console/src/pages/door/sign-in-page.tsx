import { Alert, Button, Code, PasswordInput, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useSearch } from '@tanstack/react-router';
import { useState, useSyncExternalStore } from 'react';
import { cloud } from '../../cloud.ts';
import { AnchorLink } from '../../parts/links.tsx';
import { Refused } from '../../parts/refused.tsx';
import { sayCount } from '../../parts/size.ts';
import { text } from '../../texts/text.ts';
import { isOpen, uploadQueue } from '../../uploads/upload-queue.ts';
import { Door, useEnter } from './door.tsx';

export function SignInPage() {
  const { next, ended } = useSearch({ from: '/sign-in' });
  const [username, setUsername] = useState('');
  const [password, setPassword] = useState('');
  const enter = useEnter(next);
  const index = useQuery({ queryKey: ['index'], queryFn: () => cloud.system.index() });
  const signIn = useMutation({
    mutationFn: () => cloud.account.logIn({ username, password }),
    onSuccess: enter,
    meta: { shown: true },
  });
  return (
    <Door
      title={text.door.signIn}
      lead={text.door.signInLead}
      notice={
        <>
          {ended === true && <Alert color="petrol">{text.door.ended}</Alert>}
          <UploadsWait />
          {index.data?.needs_setup === true && <NeedsSetup />}
        </>
      }
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          signIn.mutate();
        }}
      >
        <Stack>
          <TextInput
            label={text.door.name}
            name="username"
            autoComplete="username"
            autoCapitalize="none"
            spellCheck={false}
            required
            withAsterisk={false}
            value={username}
            onChange={({ currentTarget }) => setUsername(currentTarget.value)}
          />
          <PasswordInput
            label={text.door.password}
            name="password"
            autoComplete="current-password"
            required
            withAsterisk={false}
            value={password}
            onChange={({ currentTarget }) => setPassword(currentTarget.value)}
          />
          <Refused error={signIn.error} />
          <Button type="submit" loading={signIn.isPending}>
            {text.door.signIn}
          </Button>
          <Text size="sm" c="dimmed">
            {text.door.noAccount}{' '}
            <AnchorLink to="/sign-up" search={{ next }} size="sm" underline="always">
              {text.door.signUp}
            </AnchorLink>
          </Text>
        </Stack>
      </form>
    </Door>
  );
}

function UploadsWait() {
  const { items } = useSyncExternalStore(uploadQueue.subscribe, uploadQueue.snapshot);
  const open = items.filter(isOpen).length;
  return open > 0 && <Alert color="petrol">{text.door.uploadsWait(sayCount(open))}</Alert>;
}

function NeedsSetup() {
  return (
    <Alert color="petrol" title={text.door.needsSetup}>
      <Text size="sm" mb="xs">
        {text.door.needsSetupLead}
      </Text>
      <Code block>bin/cloudlet admin setup-link</Code>
    </Alert>
  );
}
