import { Alert, Code, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useSearch } from '@tanstack/react-router';
import { cloud } from '../../cloud.ts';
import { AnchorLink } from '../../parts/links.tsx';
import { text } from '../../texts/text.ts';
import { Door, useEnter } from './door.tsx';
import { SignInForm } from './door-form.tsx';
import { UploadsWait } from './uploads-wait.tsx';

export function SignInPage() {
  const { next } = useSearch({ from: '/sign-in' });
  const index = useQuery({ queryKey: ['index'], queryFn: () => cloud.getIndex() });
  return (
    <Door
      title={text.door.signIn}
      lead={text.door.signInLead}
      notice={
        <>
          <UploadsWait />
          {index.data?.needs_setup === true && <NeedsSetup />}
        </>
      }
    >
      <SignInForm onEnter={useEnter(next)}>
        <Text size="sm" c="dimmed">
          {text.door.noAccount}{' '}
          <AnchorLink to="/sign-up" search={{ next }} size="sm" underline="always">
            {text.door.signUp}
          </AnchorLink>
        </Text>
      </SignInForm>
    </Door>
  );
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
