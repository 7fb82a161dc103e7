/**
 * The page for invitation links: it creates an account. The token is in the URL's fragment (after
 * #), which browsers do not send, and is removed at once. Opening the page does not use the
 * invitation.
 */

import { Loader, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { ShownInvitation } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { Refused } from '../../parts/forms/warning.tsx';
import { AnchorLink } from '../../parts/tables/links.tsx';
import { linksText } from '../../texts/pages/links-text.ts';
import { text } from '../../texts/text.ts';
import { ACCOUNT_FIELDS, CredentialsForm } from './sign-in-form.tsx';
import { SignInLayout, useEnter } from './sign-in-pages.tsx';

const words = linksText.join;

/** Empty: the URL has none, for example after reloading. */
function readToken(): string {
  return new URLSearchParams(location.hash.slice(1)).get('token') ?? '';
}

export function JoinPage() {
  const [token] = useState(readToken);
  useEffect(() => history.replaceState(history.state, '', location.pathname), []);
  const invitation = useQuery({
    queryKey: ['invitation', token],
    queryFn: () => cloud.showInvitation({ token }),
    enabled: token !== '',
    retry: false,
    refetchOnWindowFocus: false,
  });
  const signIn = <AnchorLink to="/sign-in">{text.signIn.signIn}</AnchorLink>;
  if (token === '') {
    return (
      <SignInLayout title={words.incomplete} lead={words.incompleteLead}>
        {signIn}
      </SignInLayout>
    );
  }
  if (invitation.isError) {
    return (
      <SignInLayout title={words.ended} lead={words.endedLead}>
        <Refused error={invitation.error} atFields={NO_FIELDS} />
        {signIn}
      </SignInLayout>
    );
  }
  return (
    <SignInLayout title={words.title} lead={words.lead}>
      {invitation.data === undefined ? <Loader /> : <JoinForm token={token} invitation={invitation.data} />}
    </SignInLayout>
  );
}

const NO_FIELDS: ReadonlySet<string> = new Set();

/** Asks only for fields that the invitation leaves open. */
function JoinForm({ token, invitation }: { token: string; invitation: ShownInvitation }) {
  const { username, email, account_expires_at: end } = invitation;
  const onEnter = useEnter('/');
  const named = { username, email };
  const fields = ACCOUNT_FIELDS.filter(({ name }) => name === 'password' || named[name] === null);
  const send = async (values: Partial<Record<'username' | 'email' | 'password', string>>) => {
    const { password = '' } = values;
    const made = await cloud.join({ token, ...values, password });
    return cloud.login({ username: made.username, password });
  };
  return (
    <>
      {username !== null && (
        <Text mb="md">
          {words.named} <b>{username}</b>
        </Text>
      )}
      {end !== null && (
        <Text mb="md" size="sm">
          {words.until(end)}
        </Text>
      )}
      <CredentialsForm fields={fields} action={words.join} send={send} onEnter={onEnter} />
    </>
  );
}
