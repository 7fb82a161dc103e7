import { Text } from '@mantine/core';
import { useSearch } from '@tanstack/react-router';
import { cloud } from '../../cloud.ts';
import { AnchorLink } from '../../parts/links.tsx';
import { text } from '../../texts/text.ts';
import { Door, useEnter } from './door.tsx';
import { DoorForm } from './door-form.tsx';

const FIELDS = [
  { name: 'username', label: text.door.username, rule: text.door.usernameRule, complete: 'username' },
  { name: 'email', label: text.door.email, rule: text.door.emailRule, complete: 'email' },
  {
    name: 'password',
    label: text.door.password,
    rule: text.door.passwordRule,
    complete: 'new-password',
    isSecret: true,
  },
] as const;

async function signUp(fields: { username: string; email: string; password: string }) {
  await cloud.register(fields);
  return cloud.login({ username: fields.username, password: fields.password });
}

export function SignUpPage() {
  const { next } = useSearch({ from: '/sign-up' });
  return (
    <Door title={text.door.signUp} lead={text.door.signUpLead}>
      <DoorForm fields={FIELDS} action={text.door.signUp} send={signUp} onEnter={useEnter(next)}>
        <Text size="sm" c="dimmed">
          {text.door.haveAccount}{' '}
          <AnchorLink to="/sign-in" search={{ next }} size="sm" underline="always">
            {text.door.signIn}
          </AnchorLink>
        </Text>
      </DoorForm>
    </Door>
  );
}
