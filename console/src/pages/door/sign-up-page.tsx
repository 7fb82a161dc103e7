import { Button, PasswordInput, Stack, Text, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { cloud } from '../../cloud.ts';
import { AnchorLink } from '../../parts/links.tsx';
import { fieldError } from '../../parts/refusal.ts';
import { Refused } from '../../parts/refused.tsx';
import { text } from '../../texts/text.ts';
import { Door, useEnter } from './door.tsx';

const FIELDS = [
  { name: 'username', label: text.door.username, rule: text.door.usernameRule, complete: 'username' },
  { name: 'email', label: text.door.email, rule: text.door.emailRule, complete: 'email' },
] as const;

export function SignUpPage() {
  const { next } = useSearch({ from: '/sign-up' });
  const [fields, setFields] = useState({ username: '', email: '', password: '' });
  const enter = useEnter(next);
  const signUp = useMutation({
    mutationFn: async () => {
      await cloud.account.register(fields);
      return cloud.account.logIn({ username: fields.username, password: fields.password });
    },
    onSuccess: enter,
    meta: { shown: true },
  });
  const isOfFields = FIELDS.some(({ name }) => fieldError(signUp.error, name) !== undefined);
  const passwordError = fieldError(signUp.error, 'password');
  return (
    <Door title={text.door.signUp} lead={text.door.signUpLead}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          signUp.mutate();
        }}
      >
        <Stack>
          {FIELDS.map(({ name, label, rule, complete }) => (
            <TextInput
              key={name}
              name={name}
              label={label}
              description={rule}
              autoComplete={complete}
              autoCapitalize="none"
              spellCheck={false}
              required
              withAsterisk={false}
              value={fields[name]}
              error={fieldError(signUp.error, name)}
              onChange={({ currentTarget: { value } }) => setFields({ ...fields, [name]: value })}
            />
          ))}
          <PasswordInput
            name="password"
            label={text.door.password}
            description={text.door.passwordRule}
            autoComplete="new-password"
            required
            withAsterisk={false}
            value={fields.password}
            error={passwordError}
            onChange={({ currentTarget: { value } }) => setFields({ ...fields, password: value })}
          />
          {!isOfFields && passwordError === undefined && <Refused error={signUp.error} />}
          <Button type="submit" loading={signUp.isPending}>
            {text.door.signUp}
          </Button>
          <Text size="sm" c="dimmed">
            {text.door.haveAccount}{' '}
            <AnchorLink to="/sign-in" search={{ next }} size="sm" underline="always">
              {text.door.signIn}
            </AnchorLink>
          </Text>
        </Stack>
      </form>
    </Door>
  );
}
