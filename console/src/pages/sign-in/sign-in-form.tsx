/** The form of the sign-in and sign-up pages: credentials, and the button that sends them. */

import { Alert, Button, PasswordInput, Stack, TextInput } from '@mantine/core';
import { type ReactNode, useSyncExternalStore } from 'react';
import { type Account, CloudError } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { Refused, Warning } from '../../parts/forms/warning.tsx';
import { text } from '../../texts/text.ts';
import { isOpen, uploadQueue } from '../../uploads/upload-queue.ts';

interface CredentialsField {
  readonly name: string;
  readonly label: string;
  readonly rule?: string;
  /** The `autocomplete` value, for password managers. */
  readonly complete: string;
  readonly isSecret?: boolean;
}

type Values = Readonly<Record<string, string>>;

interface CredentialsFormProps<F extends string> {
  readonly fields: readonly (CredentialsField & { readonly name: F })[];
  readonly given?: Values;
  /** The button: `Sign in`. */
  readonly action: string;
  readonly send: (values: Readonly<Record<F, string>>) => Promise<Account>;
  readonly onEnter: (account: Account) => unknown;
  readonly children?: ReactNode;
}

export function CredentialsForm<F extends string>(props: CredentialsFormProps<F>) {
  const { fields, given = {}, action, send, onEnter, children } = props;
  const form = useCloudForm({
    values: Object.fromEntries(fields.map(({ name }) => [name, given[name] ?? ''])) as Record<string, string>,
    send: (values) => send(values as Record<F, string>),
    onDone: onEnter,
  });
  return (
    <form onSubmit={form.submit}>
      <Stack>
        {fields.map(({ name, label, rule, complete, isSecret }) => {
          const Input = isSecret ? PasswordInput : TextInput;
          return (
            <Input
              key={name}
              name={name}
              label={label}
              description={rule}
              autoComplete={complete}
              autoCapitalize="none"
              spellCheck={false}
              required
              withAsterisk={false}
              {...form.text(name)}
              data-autofocus={given[name] === undefined || undefined}
            />
          );
        })}
        <Refused {...form.refusal} />
        <Button type="submit" loading={form.isBusy}>
          {action}
        </Button>
        {children}
      </Stack>
    </form>
  );
}

/** Fields of a new account. */
export const ACCOUNT_FIELDS = [
  { name: 'username', label: text.signIn.username, rule: text.signIn.usernameRule, complete: 'username' },
  { name: 'email', label: text.signIn.email, rule: text.signIn.emailRule, complete: 'email' },
  {
    name: 'password',
    label: text.signIn.password,
    rule: text.signIn.passwordRule,
    complete: 'new-password',
    isSecret: true,
  },
] as const;

const SIGN_IN = [
  { name: 'username', label: text.signIn.name, complete: 'username' },
  { name: 'password', label: text.signIn.password, complete: 'current-password', isSecret: true },
] as const;

type SignInProps = Pick<CredentialsFormProps<'username' | 'password'>, 'given' | 'onEnter' | 'children'>;

/** A password that must be changed leads to the page that sets the next one. */
function setFirst(error: unknown): never {
  if (error instanceof CloudError && error.resetToken !== undefined)
    location.assign(`/reset-password#token=${error.resetToken}`);
  throw error;
}

export function SignInForm(props: SignInProps) {
  const send = (login: { username: string; password: string }) => cloud.login(login).catch(setFirst);
  return <CredentialsForm {...props} fields={SIGN_IN} action={text.signIn.signIn} send={send} />;
}

/** The notice that a session was replaced: it was not ended by anyone, and requires signing in again. */
export function SessionReplaced() {
  return <Warning title={text.signIn.replaced}>{text.signIn.replacedLead}</Warning>;
}

export function UploadsWait() {
  const { items } = useSyncExternalStore(uploadQueue.subscribe, uploadQueue.snapshot);
  const open = items.filter(isOpen).length;
  return open > 0 && <Alert color="petrol">{text.signIn.uploadsWait(open)}</Alert>;
}
