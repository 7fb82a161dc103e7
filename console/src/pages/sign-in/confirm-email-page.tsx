/**
 * The page that a mailed link opens: it confirms an e-mail address. The token is behind the # of the address,
 * which no server is sent, and leaves it at once. A press of the button uses it up, so that programs that
 * look at links do not.
 */

import { Button, Stack } from '@mantine/core';
import { useEffect, useState } from 'react';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { Refused } from '../../parts/forms/warning.tsx';
import { AnchorLink } from '../../parts/tables/links.tsx';
import { text } from '../../texts/text.ts';
import { SignInLayout } from './sign-in-pages.tsx';

const words = text.signIn.confirm;

export function ConfirmEmailPage() {
  const [token] = useState(() => new URLSearchParams(location.hash.slice(1)).get('token') ?? '');
  useEffect(() => history.replaceState(history.state, '', location.pathname), []);
  const form = useCloudForm({ values: {}, send: () => cloud.confirmEmail({ token }) });
  const go = <AnchorLink to="/">{words.goOn}</AnchorLink>;
  if (form.made !== undefined) {
    const { username, email } = form.made;
    return (
      <SignInLayout title={words.done} lead={words.doneLead(email, username)}>
        {go}
      </SignInLayout>
    );
  }
  if (token === '') {
    return (
      <SignInLayout title={words.incomplete} lead={words.incompleteLead}>
        {go}
      </SignInLayout>
    );
  }
  return (
    <SignInLayout title={words.title} lead={words.lead}>
      <form onSubmit={form.submit}>
        <Stack>
          <Refused {...form.refusal} />
          <Button type="submit" loading={form.isBusy} data-autofocus>
            {words.confirm}
          </Button>
        </Stack>
      </form>
    </SignInLayout>
  );
}
