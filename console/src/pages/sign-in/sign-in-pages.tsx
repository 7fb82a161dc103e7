/** The pages for users who are not signed in: sign in and sign up. */

import { QuestionMarkCircleIcon } from '@heroicons/react/24/outline';
import { Alert, Code, Paper, Stack, Text, Title } from '@mantine/core';
import { queryOptions, useQuery, useQueryClient } from '@tanstack/react-query';
import { useRouter, useSearch } from '@tanstack/react-router';
import { type ReactNode, useEffect, useState, useSyncExternalStore } from 'react';
import type { Account, ApiIndex } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { Fold } from '../../parts/forms/fold.tsx';
import { AnchorLink } from '../../parts/tables/links.tsx';
import { accountQuery, session } from '../../queries.ts';
import { Logo } from '../../shell/logo.tsx';
import classes from '../../shell/shell.module.css';
import { text } from '../../texts/text.ts';
import { uploadQueue } from '../../uploads/upload-queue.ts';
import { MailForm } from './mail-form.tsx';
import {
  ACCOUNT_FIELDS,
  CredentialsForm,
  SessionReplaced,
  SignInForm,
  UploadsWait,
} from './sign-in-form.tsx';

interface SignInLayoutProps {
  readonly title: string;
  readonly lead: string;
  readonly notice?: ReactNode;
  readonly children: ReactNode;
}

export function SignInLayout({ title, lead, notice, children }: SignInLayoutProps) {
  useEffect(() => {
    document.title = `${title} · Cloudlet`;
  }, [title]);
  return (
    <main className={classes.signIn}>
      <Stack w="100%" maw={400} gap="lg">
        <Logo />
        {notice}
        <Paper withBorder radius="lg" p="xl">
          <Title order={1}>{title}</Title>
          <Text c="dimmed" mb="lg">
            {lead}
          </Text>
          {children}
        </Paper>
      </Stack>
    </main>
  );
}

/** Enters the console: at `next`, or at the overview. */
export function useEnter(next: string | undefined) {
  const queryClient = useQueryClient();
  const router = useRouter();
  return (account: Account) => {
    queryClient.clear();
    queryClient.setQueryData(accountQuery.queryKey, account);
    session.set('alive');
    uploadQueue.signedIn(account.id);
    router.history.push(next ?? '/');
  };
}

/** Also for those who are not signed in. */
export const indexQuery = queryOptions({ queryKey: ['index'], queryFn: () => cloud.getIndex() });

/** Assumed until known, because it is true on most clouds. */
function isOpen(index: ApiIndex | undefined): boolean {
  return index === undefined || index.registration === 'open';
}

export function SignInPage() {
  const { next } = useSearch({ from: '/sign-in' });
  const isReplaced = useSyncExternalStore(session.subscribe, session.get) === 'replaced';
  const index = useQuery(indexQuery);
  return (
    <SignInLayout
      title={text.signIn.signIn}
      lead={text.signIn.signInLead}
      notice={
        <>
          {isReplaced && <SessionReplaced />}
          <UploadsWait />
          {index.data?.needs_setup === true && <NeedsSetup />}
        </>
      }
    >
      <SignInForm onEnter={useEnter(next)}>
        {index.data?.mail === true ? (
          <AnchorLink to="/forgot-password" size="sm">
            {text.signIn.forgot}
          </AnchorLink>
        ) : (
          <Forgotten />
        )}
        <Text size="sm" c="dimmed">
          {text.signIn.noAccount}{' '}
          {isOpen(index.data) || index.data?.registration === 'domain' ? (
            <AnchorLink to="/sign-up" search={{ next }} size="sm" underline="always">
              {text.signIn.signUp}
            </AnchorLink>
          ) : (
            text.signIn.ask[index.data?.registration === 'invitation' ? 'invitation' : 'closed']
          )}
        </Text>
      </SignInForm>
    </SignInLayout>
  );
}

/** Without mail an administrator who knows the person passes on a link. */
function Forgotten() {
  return (
    <Fold icon={QuestionMarkCircleIcon} label={text.signIn.forgot}>
      <Stack gap="xs" pt="xs">
        <Text size="sm">{text.signIn.forgotLead}</Text>
        <Text size="sm">{text.signIn.forgotOperator}</Text>
        <Code block>bin/cloudlet admin reset-link NAME</Code>
      </Stack>
    </Fold>
  );
}

function NeedsSetup() {
  return (
    <Alert color="petrol" title={text.signIn.needsSetup}>
      <Text size="sm" mb="xs">
        {text.signIn.needsSetupLead}
      </Text>
      <Code block>bin/cloudlet admin setup-link</Code>
    </Alert>
  );
}

async function signUp(fields: { username: string; email: string; password: string }) {
  await cloud.register(fields);
  return cloud.login({ username: fields.username, password: fields.password });
}

export function SignUpPage() {
  const { next } = useSearch({ from: '/sign-up' });
  const onEnter = useEnter(next);
  const index = useQuery(indexQuery);
  const signIn = (
    <Text size="sm" c="dimmed">
      {text.signIn.haveAccount}{' '}
      <AnchorLink to="/sign-in" search={{ next }} size="sm" underline="always">
        {text.signIn.signIn}
      </AnchorLink>
    </Text>
  );
  if (index.data?.registration === 'domain') return <DomainSignUp index={index.data}>{signIn}</DomainSignUp>;
  if (!isOpen(index.data)) {
    const policy = index.data?.registration === 'invitation' ? 'invitation' : 'closed';
    return (
      <SignInLayout title={text.signIn.closed[policy]} lead={text.signIn.closedLead[policy]}>
        {signIn}
      </SignInLayout>
    );
  }
  return (
    <SignInLayout title={text.signIn.signUp} lead={text.signIn.signUpLead}>
      <CredentialsForm fields={ACCOUNT_FIELDS} action={text.signIn.signUp} send={signUp} onEnter={onEnter}>
        {signIn}
      </CredentialsForm>
    </SignInLayout>
  );
}

/** Registration by mail is limited to addresses in some domains. */
function DomainSignUp({ index, children }: { index: ApiIndex; children: ReactNode }) {
  const [asked, setAsked] = useState<string>();
  const words = text.signIn.byDomain;
  const lead = asked === undefined ? words.lead(index.registration_domains) : words.sentLead(asked);
  return (
    <SignInLayout title={asked === undefined ? text.signIn.signUp : words.sent} lead={lead}>
      <Stack>
        {asked === undefined && <MailForm action={words.send} send={askAccount} onSent={setAsked} />}
        {children}
      </Stack>
    </SignInLayout>
  );
}

const askAccount = (email: string) => cloud.requestRegistration({ email });
