/** Several queries at once, kept in this browser for each database. */
import { PlusIcon, XMarkIcon } from '@heroicons/react/24/outline';
import { ActionIcon, Group, Tabs, TextInput } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { Confirm } from '../../../parts/forms/dialog.tsx';
import { queriesText as words } from '../../../texts/queries-text.ts';
import { savedQuery } from './queries.ts';
import classes from './tabs.module.css';

export interface QueryTabEntry {
  readonly id: string;
  readonly name: string;
  readonly text: string;
}

interface Kept {
  readonly tabs: readonly QueryTabEntry[];
  readonly active: string;
}

const MOST_TABS = 30;

/** `first`: the text of the first tab; `asked`: a tab requested by the address. */
export function useQueryTabs(
  databaseId: string,
  { first, asked }: { readonly first: string; readonly asked: Omit<QueryTabEntry, 'id'> | null },
) {
  const [kept, setKept] = useLocalStorage<Kept>({
    key: `cloudlet.query-tabs.${databaseId}`,
    defaultValue: { tabs: [{ id: '1', name: words.tab(1), text: first }], active: '1' },
    getInitialValueInEffect: false,
  });
  const [opened, setOpened] = useState<string | null>(null);
  // Rendering again must not open it again.
  if (asked !== null && opened !== asked.text) {
    setOpened(asked.text);
    setKept(withTab(kept, asked));
  }
  const active = kept.tabs.find(({ id }) => id === kept.active) ?? (kept.tabs[0] as QueryTabEntry);
  const change = (id: string, more: Partial<QueryTabEntry>) =>
    setKept((before) => ({
      ...before,
      tabs: before.tabs.map((tab) => (tab.id === id ? Object.assign({}, tab, more) : tab)),
    }));
  return {
    tabs: kept.tabs,
    active,
    change,
    choose: (id: string) => setKept((before) => ({ ...before, active: id })),
    add: () => setKept((before) => withTab(before, { name: words.tab(nextId(before)), text: '' })),
    close: (id: string) => setKept((before) => withoutTab(before, id)),
  };
}

const nextId = ({ tabs }: Kept) => 1 + Math.max(...tabs.map(({ id }) => Number(id) || 0));

/** A tab with the same text is opened instead of another one. */
function withTab(kept: Kept, added: Omit<QueryTabEntry, 'id'>): Kept {
  const same = added.text === '' ? undefined : kept.tabs.find(({ text }) => text === added.text);
  if (same !== undefined) return { ...kept, active: same.id };
  if (kept.tabs.length >= MOST_TABS) return kept;
  const id = String(nextId(kept));
  return { tabs: [...kept.tabs, { id, name: added.name, text: added.text }], active: id };
}

function withoutTab(kept: Kept, id: string): Kept {
  const at = kept.tabs.findIndex((tab) => tab.id === id);
  const tabs = kept.tabs.filter((tab) => tab.id !== id);
  const next = tabs[Math.min(at, tabs.length - 1)];
  if (next === undefined) return { tabs: [{ id: '1', name: words.tab(1), text: '' }], active: '1' };
  return { tabs, active: kept.active === id ? next.id : kept.active };
}

interface QueryTabsProps {
  readonly databaseId: string;
  readonly kept: ReturnType<typeof useQueryTabs>;
  readonly children: ReactNode;
}

export function QueryTabs({ databaseId, kept, children }: QueryTabsProps) {
  const { tabs, active, change, choose, add, close } = kept;
  const { data: saved = [] } = useQuery(savedQuery(databaseId));
  const [closing, setClosing] = useState<QueryTabEntry | null>(null);
  const [renamed, setRenamed] = useState<string | null>(null);
  const isKept = ({ text }: QueryTabEntry) => text.trim() === '' || saved.some((one) => one.text === text);
  const ask = (tab: QueryTabEntry) => (isKept(tab) ? close(tab.id) : setClosing(tab));
  return (
    <Tabs value={active.id} onChange={(id) => id !== null && choose(id)} keepMounted={false}>
      <Group gap={4} wrap="nowrap" mb="xs">
        <Tabs.List aria-label={words.tabs} className={classes.list ?? ''}>
          {tabs.map((tab) => (
            <Tabs.Tab
              key={tab.id}
              value={tab.id}
              onDoubleClick={() => setRenamed(tab.id)}
              onKeyDown={(event) => {
                if (event.key === 'F2') setRenamed(tab.id);
                if (event.key === 'Delete') ask(tab);
              }}
            >
              {tab.name}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <ActionIcon variant="subtle" color="gray" aria-label={words.newTab} onClick={add}>
          <PlusIcon width={18} />
        </ActionIcon>
        <ActionIcon
          variant="subtle"
          color="gray"
          aria-label={words.closeTab(active.name)}
          onClick={() => ask(active)}
        >
          <XMarkIcon width={18} />
        </ActionIcon>
      </Group>
      {renamed === active.id && (
        <NameField
          name={active.name}
          onEnd={(name) => {
            setRenamed(null);
            if (name !== '') change(active.id, { name });
          }}
        />
      )}
      <Tabs.Panel value={active.id}>{children}</Tabs.Panel>
      <Confirm
        isOpen={closing !== null}
        title={words.closeAsk(closing?.name ?? '')}
        action={words.closeSubmit}
        onConfirm={() => {
          if (closing !== null) close(closing.id);
          setClosing(null);
        }}
        onClose={() => setClosing(null)}
      >
        {words.closeLead}
      </Confirm>
    </Tabs>
  );
}

function NameField({ name, onEnd }: { readonly name: string; readonly onEnd: (name: string) => void }) {
  const [typed, setTyped] = useState(name);
  return (
    <TextInput
      size="xs"
      mb="xs"
      maw={240}
      label={words.tabName}
      data-autofocus
      autoFocus
      value={typed}
      onChange={({ currentTarget }) => setTyped(currentTarget.value)}
      onBlur={() => onEnd(typed.trim())}
      onKeyDown={(event) => {
        if (event.key === 'Enter') onEnd(typed.trim());
        if (event.key === 'Escape') onEnd('');
      }}
    />
  );
}
