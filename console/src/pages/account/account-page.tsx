/** Who one is here, the keys programs use, and the password. */
import { Stack } from '@mantine/core';
import { Page } from '../../parts/page.tsx';
import { text } from '../../texts/text.ts';
import { AccessKeys } from './access-keys.tsx';
import { ApiKey } from './api-key.tsx';
import { CloseAccount } from './close-account.tsx';
import { LoginForm } from './login-form.tsx';
import { Sessions } from './sessions.tsx';

export function AccountPage() {
  return (
    <Page title={text.account.title} lead={text.account.lead}>
      <Stack gap={40}>
        <ApiKey />
        <AccessKeys />
        <Sessions />
        <LoginForm />
        <CloseAccount />
      </Stack>
    </Page>
  );
}
