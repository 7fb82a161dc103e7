/** The audit log of an account, or of the whole cloud. */
import { Button, Group, NativeSelect, Stack, Text, TextInput, Title } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { type FormEvent, useMemo, useState } from 'react';
import type { AuditEntry } from '../../../../sdk/index.ts';
import { Loaded } from '../../parts/page.tsx';
import { type Column, DataTable } from '../../parts/tables/data-table.tsx';
import { StateBadge, type Tone } from '../../parts/tables/state-badge.tsx';
import { When } from '../../parts/tables/when.tsx';
import { auditText } from '../../texts/audit-text.ts';
import { type AuditFilter, auditQuery, NO_FILTER, OUTCOMES } from './queries.ts';

const words = auditText;
const TONES: Readonly<Record<AuditEntry['outcome'], Tone>> = {
  done: 'good',
  refused: 'quiet',
  failed: 'bad',
};

type Names = ReadonlyMap<string, string>;
const NO_NAMES: Names = new Map();

const columnsWith = (names: Names): readonly Column<AuditEntry>[] => [
  { name: words.when, cell: ({ at }) => <When at={at} /> },
  { name: words.who, title: ({ user_agent }) => user_agent, cell: (entry) => <Who {...entry} /> },
  { name: words.action, cell: ({ action }) => action },
  { name: words.target, isMono: true, cell: (entry) => targetOf(entry, names) },
  { name: words.outcome, title: ({ code }) => code, cell: (entry) => <Outcome {...entry} /> },
];

/** Accounts are shown by name if the name is known. */
function targetOf({ target, account_id: accountId }: AuditEntry, names: Names): string {
  return (String(accountId) === target ? names.get(target) : undefined) ?? target;
}

/** No user name has a space, so no account looks like the operator or the cloud. */
function nameOf({ actor, via }: AuditEntry): string {
  if (via === 'control') return words.operator;
  if (via === 'cloud') return words.cloud;
  return actor === '' ? words.nobody : actor;
}

function Who(entry: AuditEntry) {
  const { credential, address } = entry;
  return (
    <>
      {nameOf(entry)}
      <Text className="mono" size="xs" c="dimmed">
        {[address, credential].filter((part) => part !== '').join(' · ')}
      </Text>
    </>
  );
}

function Outcome({ outcome, code, times }: AuditEntry) {
  return (
    <>
      <StateBadge tone={TONES[outcome]} word={words.outcomes[outcome]} reason={code} />
      {times > 1 && <Text size="xs">{words.times(times)}</Text>}
    </>
  );
}

interface AuditLogProps {
  /** `all`, or an id, for administrators; default: the caller's. */
  readonly account?: string;
  /** User names by the id of the account. */
  readonly names?: Names;
}

export function AuditLog({ account, names = NO_NAMES }: AuditLogProps) {
  const columns = useMemo(() => columnsWith(names), [names]);
  const [filter, setFilter] = useState<AuditFilter>(NO_FILTER);
  const log = useInfiniteQuery(auditQuery(account, filter));
  const isFiltered = Object.values(filter).some((value) => value !== '');
  return (
    <Stack>
      <Filters onChange={(change) => setFilter((before) => ({ ...before, ...change }))} />
      <Loaded query={log}>
        {({ pages }) => {
          const entries = pages.flatMap(({ items }) => items);
          if (entries.length === 0)
            return <Text c="dimmed">{isFiltered ? words.noneFound : words.none}</Text>;
          return <DataTable columns={columns} rows={entries} keyOf={({ id }) => id} />;
        }}
      </Loaded>
      {log.hasNextPage && (
        <Button variant="default" loading={log.isFetchingNextPage} onClick={() => log.fetchNextPage()}>
          {words.older}
        </Button>
      )}
    </Stack>
  );
}

const FIELDS = ['actor', 'action', 'target'] as const;
const LABELS = { actor: words.who, action: words.action, target: words.target };

/** Filters apply when Enter is pressed or the field loses the focus. */
function Filters({ onChange }: { onChange: (change: Partial<AuditFilter>) => void }) {
  const take = (name: (typeof FIELDS)[number]) => (event: FormEvent<HTMLInputElement>) =>
    onChange({ [name]: event.currentTarget.value.trim() });
  return (
    <Group>
      {FIELDS.map((name) => (
        <TextInput
          key={name}
          aria-label={LABELS[name]}
          placeholder={LABELS[name]}
          onBlur={take(name)}
          onKeyDown={(event) => event.key === 'Enter' && take(name)(event)}
        />
      ))}
      <NativeSelect
        aria-label={words.outcome}
        data={[
          { value: '', label: words.anyOutcome },
          ...OUTCOMES.map((value) => ({ value, label: words.outcomes[value] })),
        ]}
        onChange={({ currentTarget }) => onChange({ outcome: currentTarget.value as AuditFilter['outcome'] })}
      />
    </Group>
  );
}

/** Section of the account's page. */
export function OwnActivity() {
  return (
    <Stack component="section" gap="xs" aria-labelledby="activity">
      <Title order={2} id="activity">
        {words.title}
      </Title>
      <Text c="dimmed">{words.lead}</Text>
      <AuditLog />
    </Stack>
  );
}
