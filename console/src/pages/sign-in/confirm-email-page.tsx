/**
 * The page for links in mail that confirm an e-mail address. The token is in the URL's fragment
 * (after #), which browsers do not send, and is removed at once. It is used only when the button is
 * pressed, not by programs that scan links.
 */

import { Button, Stack } from '@mantine/core';
import { useEffect, useState } from 'react';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { Refused } from '../../parts/forms/warning.tsx';
import { AnchorLink } from '../../parts/tables/links.tsx';
import { linksText } from '../../texts/pages/links-text.ts';
import { SignInLayout } from './sign-in-pages.tsx';

const words = linksText.confirm;

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
