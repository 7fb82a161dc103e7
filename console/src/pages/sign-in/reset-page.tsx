/**
 * The page for reset links: it sets a new password. The token is in the URL's fragment (after #),
 * which browsers do not send, and is removed at once.
 */

import { Button, Group, PasswordInput, Stack, Text } from '@mantine/core';
import { type FormEvent, useEffect, useState } from 'react';
import { type Account, CloudError, type ResetPassword } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { Refused, Warning } from '../../parts/forms/warning.tsx';
import { AnchorLink } from '../../parts/tables/links.tsx';
import { linksText } from '../../texts/pages/links-text.ts';
import { text } from '../../texts/text.ts';
import { SignInLayout, useEnter } from './sign-in-pages.tsx';

const words = linksText.reset;

/** Empty: the URL has none, for example after reloading. */
function readToken(): string {
  return new URLSearchParams(location.hash.slice(1)).get('token') ?? '';
}

interface Done extends ResetPassword {
  /** undefined: the new password was set, but sign-in failed. */
  readonly account: Account | undefined;
}

/** Signs in as well, as the set-up link does. */
async function setPassword(token: string, password: string): Promise<Done> {
  const done = await cloud.resetPassword({ token, password });
  const login = cloud.login({ username: done.username, password });
  return { ...done, account: await login.catch(() => undefined) };
}

export function ResetPage() {
  const [token] = useState(readToken);
  useEffect(() => history.replaceState(history.state, '', location.pathname), []);
  const [done, setDone] = useState<Done>();
  if (done !== undefined) return <Outcome done={done} />;
  if (token === '') {
    return (
      <SignInLayout title={words.incomplete} lead={words.incompleteLead}>
        <AnchorLink to="/sign-in">{text.signIn.signIn}</AnchorLink>
      </SignInLayout>
    );
  }
  return (
    <SignInLayout title={words.title} lead={words.lead}>
      <NewPasswordForm token={token} onDone={setDone} />
    </SignInLayout>
  );
}

function NewPasswordForm({ token, onDone }: { token: string; onDone: (done: Done) => void }) {
  const [isSent, setSent] = useState(false);
  const form = useCloudForm({
    values: { password: '', again: '' },
    send: ({ password }) => setPassword(token, password),
    onDone,
  });
  const { password, again } = form.values;
  const submit = (event: FormEvent) => {
    setSent(true);
    if (password === again) form.submit(event);
    else event.preventDefault();
  };
  const { error } = form.refusal;
  if (error instanceof CloudError && error.code === 'invalid_link') return <Ended says={error.message} />;
  const typed = { autoComplete: 'new-password', required: true, withAsterisk: false };
  return (
    <form onSubmit={submit}>
      <Stack>
        <PasswordInput
          label={words.password}
          description={text.signIn.passwordRule}
          data-autofocus
          {...typed}
          {...form.text('password')}
        />
        <PasswordInput
          label={words.again}
          {...typed}
          {...form.text('again')}
          error={isSent && password !== again ? words.differ : undefined}
        />
        <Refused {...form.refusal} />
        <Button type="submit" loading={form.isBusy}>
          {words.save}
        </Button>
      </Stack>
    </form>
  );
}

/** Another password would not help, so the fields are not shown again. */
function Ended({ says }: { says: string }) {
  return (
    <Stack>
      <Warning title={says} role="alert" isError>
        {words.linkEnded}
      </Warning>
      <AnchorLink to="/forgot-password">{text.signIn.forgot}</AnchorLink>
      <AnchorLink to="/sign-in">{text.signIn.signIn}</AnchorLink>
    </Stack>
  );
}

/** Keys remain valid, and somebody else may know one: the page says so. */
function Outcome({ done: { username, sessions_ended, keys_kept, account } }: { done: Done }) {
  const [enter, showKeys] = [useEnter('/'), useEnter('/account')];
  const lead = account === undefined ? words.signIn(username) : words.doneLead(username);
  return (
    <SignInLayout title={words.done} lead={lead}>
      <Stack>
        <Text size="sm">{words.ended(sessions_ended)}</Text>
        <Text size="sm">{words.kept(keys_kept)}</Text>
        {account === undefined ? (
          <AnchorLink to="/sign-in">{text.signIn.signIn}</AnchorLink>
        ) : (
          <Group justify="flex-end">
            {keys_kept > 0 && (
              <Button variant="default" onClick={() => showKeys(account)}>
                {words.showKeys}
              </Button>
            )}
            <Button onClick={() => enter(account)}>{words.goOn}</Button>
          </Group>
        )}
      </Stack>
    </SignInLayout>
  );
}
