/**
 * The page for a forgotten password: requests a mail with a link, or says whom to ask if the cloud
 * sends no mail.
 */

import { Code, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { cloud } from '../../cloud.ts';
import { AnchorLink } from '../../parts/tables/links.tsx';
import { linksText } from '../../texts/pages/links-text.ts';
import { text } from '../../texts/text.ts';
import { MailForm } from './mail-form.tsx';
import { indexQuery, SignInLayout } from './sign-in-pages.tsx';

const words = linksText.forgotten;

export function ForgotPage() {
  const index = useQuery(indexQuery);
  const [asked, setAsked] = useState<string>();
  const back = <AnchorLink to="/sign-in">{text.signIn.signIn}</AnchorLink>;
  if (asked !== undefined) {
    return (
      <SignInLayout title={words.sent} lead={words.sentLead(asked)}>
        <Stack>
          <Text size="sm">{words.sentNote}</Text>
          {back}
        </Stack>
      </SignInLayout>
    );
  }
  const sendsMail = index.data?.mail === true;
  return (
    <SignInLayout title={text.signIn.forgot} lead={sendsMail ? words.lead : text.signIn.forgotLead}>
      <Stack>
        {sendsMail ? <MailForm action={words.send} send={askReset} onSent={setAsked} /> : <AskOperator />}
        {back}
      </Stack>
    </SignInLayout>
  );
}

const askReset = (email: string) => cloud.requestPasswordReset({ email });

/** Without mail, an administrator who knows the person passes on a link. */
function AskOperator() {
  return (
    <Stack gap="xs">
      <Text size="sm">{text.signIn.forgotOperator}</Text>
      <Code block>bin/cloudlet admin reset-link NAME</Code>
    </Stack>
  );
}
