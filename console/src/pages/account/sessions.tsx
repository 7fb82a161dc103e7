/** Active sessions: browser, last use, and ending them. */
import { Badge, Button, Group, Stack, Text, Title } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Session } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { showDone } from '../../parts/notices.tsx';
import { Loaded } from '../../parts/page.tsx';
import { type Column, DataTable } from '../../parts/tables/data-table.tsx';
import { When } from '../../parts/tables/when.tsx';
import { text } from '../../texts/text.ts';
import { sessionsQuery } from './queries.ts';

const words = text.account.sessions;
const COLUMNS: readonly Column<Session>[] = [
  { name: words.browser, title: ({ user_agent }) => user_agent, cell: (session) => <Browser {...session} /> },
  { name: words.begun, cell: (session) => <Begun {...session} /> },
  { name: text.account.lastUsed, cell: ({ last_used_at }) => <When at={last_used_at} /> },
  {
    name: text.account.actions,
    isActions: true,
    cell: (session) => !session.is_current && <End {...session} />,
  },
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
      <Loaded query={sessions}>{(all) => <SessionTable all={all.toReversed()} />}</Loaded>
    </Stack>
  );
}

/** More sessions of programs are folded: a script may sign in each minute. */
const SHOWN_PROGRAMS = 2;
const isProgram = ({ user_agent, is_current }: Session) => !user_agent.startsWith('Mozilla/') && !is_current;

function SessionTable({ all }: { all: readonly Session[] }) {
  const [showsAll, setShowsAll] = useState(false);
  const programs = all.filter(isProgram);
  const shown = new Set(showsAll ? programs : programs.slice(0, SHOWN_PROGRAMS));
  const folded = programs.length - shown.size;
  return (
    <>
      <DataTable
        columns={COLUMNS}
        rows={all.filter((one) => !isProgram(one) || shown.has(one))}
        keyOf={({ id }) => id}
      />
      {folded > 0 && (
        <Button variant="subtle" onClick={() => setShowsAll(true)} style={{ alignSelf: 'flex-start' }}>
          {words.showPrograms(folded)}
        </Button>
      )}
    </>
  );
}

const nameOf = (userAgent: string) => browserOf(userAgent) ?? words.unknown;

function Browser({ user_agent, is_current }: Session) {
  return (
    <Group gap="xs">
      {nameOf(user_agent)}
      {is_current && <Badge variant="light">{words.current}</Badge>}
    </Group>
  );
}

function Begun({ created_at, address }: Session) {
  return (
    <>
      <When at={created_at} />
      {address !== '' && (
        <Text size="sm" c="dimmed">
          {words.from(address)}
        </Text>
      )}
    </>
  );
}

function End({ id, user_agent }: Session) {
  const end = useEnd(() => cloud.endSession(id), words.ended);
  return (
    <Button
      size="compact-sm"
      variant="default"
      aria-label={words.endOne(nameOf(user_agent))}
      loading={end.isPending}
      onClick={() => end.mutate()}
    >
      {words.end}
    </Button>
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

/** `Firefox · Linux`; for other programs, the first word of the User-Agent; undefined for an empty text. */
function browserOf(userAgent: string): string | undefined {
  const browser = BROWSERS.find(([sign]) => userAgent.includes(`${sign}/`))?.[1];
  const system = SYSTEMS.find(([sign]) => userAgent.includes(sign))?.[1];
  const name = browser ?? userAgent.split(/[\s/]/, 1)[0];
  const parts = [name, system].filter((part) => part !== undefined && part !== '');
  return parts.length === 0 ? undefined : parts.join(' · ');
}
