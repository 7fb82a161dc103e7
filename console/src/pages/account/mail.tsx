/** The e-mail address of the account: whether it is confirmed, and the subjects of mail to it. */
import { Badge, Button, Group, Stack, Switch, Text, Title } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { Account } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { showDone } from '../../parts/notices.tsx';
import { accountQuery } from '../../queries.ts';
import { text } from '../../texts/text.ts';
import { indexQuery } from '../sign-in/sign-in-pages.tsx';

const words = text.account.mail;

/** Hidden if the cloud sends no mail. */
export function AccountMail() {
  const { data: account } = useQuery(accountQuery);
  const { data: index } = useQuery(indexQuery);
  if (account === undefined || index?.mail !== true) return null;
  return (
    <section aria-labelledby="mail">
      <Title order={2} id="mail" mb="xs">
        {words.title}
      </Title>
      <Stack maw={420}>
        <Confirmed account={account} />
        <Subjects account={account} />
      </Stack>
    </section>
  );
}

function Confirmed({ account: { email, email_confirmed } }: { account: Account }) {
  const ask = useMutation({
    mutationFn: () => cloud.requestEmailConfirmation(),
    onSuccess: ({ mailed_to }) => showDone(words.asked(mailed_to)),
  });
  return (
    <>
      <Group gap="xs">
        {email}
        <Badge variant="light" color={email_confirmed ? 'petrol' : 'orange'}>
          {email_confirmed ? words.confirmed : words.unconfirmed}
        </Badge>
      </Group>
      {!email_confirmed && (
        <>
          <Text size="sm">{words.unconfirmedLead}</Text>
          <div>
            <Button variant="default" loading={ask.isPending} onClick={() => ask.mutate()}>
              {words.ask}
            </Button>
          </div>
        </>
      )}
    </>
  );
}

function Subjects({ account }: { account: Account }) {
  const queryClient = useQueryClient();
  const change = useMutation({
    mutationFn: (about: Account['mail_about']) => cloud.updateAccount({ mail_about: about }),
    onSuccess: (changed) => queryClient.setQueryData(accountQuery.queryKey, changed),
  });
  const { mail_about: about, is_admin: isAdmin, email_confirmed: isConfirmed } = account;
  const subjects = ['credits', ...(isAdmin ? (['alarms'] as const) : [])] as const;
  return subjects.map((subject) => (
    <Switch
      key={subject}
      label={words.about[subject]}
      description={isConfirmed ? undefined : words.aboutLater}
      checked={about.includes(subject)}
      disabled={change.isPending}
      onChange={({ currentTarget }) =>
        change.mutate(currentTarget.checked ? [...about, subject] : about.filter((one) => one !== subject))
      }
    />
  ));
}
