/** Where one is signed in: which browser, when it was used last, and the end of it. */
import { Badge, Button, Group, Stack, Table, Text, Title } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import type { Session } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { ListTable } from '../../parts/list-table.tsx';
import { showDone } from '../../parts/notices.tsx';
import { Loaded } from '../../parts/page.tsx';
import { When } from '../../parts/when.tsx';
import { text } from '../../texts/text.ts';
import { sessionsQuery } from './queries.ts';

const words = text.account.sessions;
const HEADS = [
  { name: words.browser },
  { name: words.begun },
  { name: text.account.lastUsed },
  { name: text.account.actions, isHidden: true },
];

export function Sessions() {
  const sessions = useQuery(sessionsQuery);
  const endOthers = useEnd(() => cloud.endOtherSessions(), words.endedOthers);
  return (
    <Stack component="section" gap="xs" aria-labelledby="sessions">
      <Group justify="space-between">
        <Title order={2} id="sessions">
          {words.title}
        </Title>
        {(sessions.data?.length ?? 0) > 1 && (
          <Button variant="default" loading={endOthers.isPending} onClick={() => endOthers.mutate()}>
            {words.endOthers}
          </Button>
        )}
      </Group>
      <Text c="dimmed">{words.lead}</Text>
      <Loaded query={sessions}>
        {(all) => (
          <ListTable heads={HEADS}>
            {all.toReversed().map((session) => (
              <SessionRow key={session.id} session={session} />
            ))}
          </ListTable>
        )}
      </Loaded>
    </Stack>
  );
}

function SessionRow({ session }: { session: Session }) {
  const { id, user_agent, address, is_current, created_at, last_used_at } = session;
  const browser = browserOf(user_agent) ?? words.unknown;
  const end = useEnd(() => cloud.endSession(id), words.ended);
  return (
    <Table.Tr>
      <Table.Td title={user_agent}>
        <Group gap="xs">
          {browser}
          {is_current && <Badge variant="light">{words.current}</Badge>}
        </Group>
      </Table.Td>
      <Table.Td>
        <When at={created_at} />
        {address !== '' && (
          <Text size="sm" c="dimmed">
            {words.from(address)}
          </Text>
        )}
      </Table.Td>
      <Table.Td>
        <When at={last_used_at} />
      </Table.Td>
      <Table.Td ta="right">
        {!is_current && (
          <Button
            size="compact-sm"
            variant="default"
            aria-label={words.endOne(browser)}
            loading={end.isPending}
            onClick={() => end.mutate()}
          >
            {words.end}
          </Button>
        )}
      </Table.Td>
    </Table.Tr>
  );
}

function useEnd(mutationFn: () => Promise<unknown>, done: string) {
  return useMutation({
    mutationFn,
    meta: { invalidates: [sessionsQuery] },
    onSuccess: () => showDone(done),
  });
}

// A User-Agent also names the browsers below its own, so the first match counts.
const BROWSERS = [
  ['Edg', 'Edge'],
  ['OPR', 'Opera'],
  ['Firefox', 'Firefox'],
  ['HeadlessChrome', 'Chrome'],
  ['Chrome', 'Chrome'],
  ['Safari', 'Safari'],
  ['curl', 'curl'],
] as const;
const SYSTEMS = [
  ['iPhone', 'iPhone'],
  ['iPad', 'iPad'],
  ['Android', 'Android'],
  ['Windows', 'Windows'],
  ['Mac OS X', 'macOS'],
  ['CrOS', 'ChromeOS'],
  ['Linux', 'Linux'],
] as const;

/** `Firefox · Linux`; the program's own first word when it is no browser; undefined for an empty text. */
function browserOf(userAgent: string): string | undefined {
  const browser = BROWSERS.find(([sign]) => userAgent.includes(`${sign}/`))?.[1];
  const system = SYSTEMS.find(([sign]) => userAgent.includes(sign))?.[1];
  const name = browser ?? userAgent.split(/[\s/]/, 1)[0];
  const parts = [name, system].filter((part) => part !== undefined && part !== '');
  return parts.length === 0 ? undefined : parts.join(' · ');
}
