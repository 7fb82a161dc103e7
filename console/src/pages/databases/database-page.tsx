/** One database: connection, content and settings. */

import { Group, Tabs } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import type { Database, DatabaseEngine } from '../../../../sdk/index.ts';
import { Warning } from '../../parts/forms/warning.tsx';
import { lazyPart } from '../../parts/lazy-part.tsx';
import { LogView } from '../../parts/log-view.tsx';
import { Loaded, Page } from '../../parts/page.tsx';
import classes from '../../parts/parts.module.css';
import { sayBytes, sayCredits } from '../../parts/say.ts';
import { AnchorLink } from '../../parts/tables/links.tsx';
import { DatabaseState } from '../../parts/tables/state-badge.tsx';
import { text } from '../../texts/text.ts';
import { ConnectTab } from './connect-tab.tsx';
import { ManageTab } from './manage-tab.tsx';
import { DATABASE_TABS, type DatabaseTab, databaseQuery, enginesQuery, logQuery } from './queries/queries.ts';
import { TablesTab } from './tables-tab.tsx';

const words = text.databases;
const WAITING = <Group h={320} aria-busy="true" />;
const QueryTab = lazyPart(() => import('./queries/query-tab.tsx').then((made) => made.QueryTab), WAITING);
const ChartsTab = lazyPart(() => import('./charts-tab.tsx').then((made) => made.ChartsTab), WAITING);

export function DatabasePage() {
  const { database: id } = useParams({ from: '/shell/databases/$database' });
  const query = useQuery(databaseQuery(id));
  const engines = useQuery(enginesQuery);
  const database = query.data;
  const engine = engines.data?.find((one) => one.engine === database?.engine);
  return (
    <Page
      title={database?.name ?? id}
      trail={<AnchorLink to="/databases">{words.title}</AnchorLink>}
      lead={database === undefined ? undefined : leadOf(database, engine?.title ?? database.engine)}
      actions={database === undefined ? undefined : <DatabaseState database={database} />}
    >
      <Loaded query={query}>
        {(read) => (
          <Loaded query={engines}>{() => engine && <Inside database={read} engine={engine} />}</Loaded>
        )}
      </Loaded>
    </Page>
  );
}

function leadOf({ version, size_bytes, price_per_hour }: Database, title: string): string {
  const name = [title, version].filter((part) => part !== null).join(' ');
  const size = sayBytes(size_bytes);
  const price = Number(price_per_hour);
  return `${name} · ${price === 0 ? words.freeLine(size) : words.priceLine(size, sayCredits(price))}`;
}

function Inside({ database, engine }: { database: Database; engine: DatabaseEngine }) {
  const { tab = 'connect' } = useSearch({ from: '/shell/databases/$database' });
  const navigate = useNavigate({ from: '/databases/$database' });
  const open = (next: string | null) =>
    navigate({ search: (before) => ({ ...before, tab: next as DatabaseTab }), replace: true });
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // On a phone, the last tabs may be out of view.
    const active = list.current?.querySelector(`[data-tab=${tab}]`);
    active?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [tab]);
  const shown = DATABASE_TABS.filter((one) => one !== 'log' || engine.traits.has_log);
  return (
    <>
      {database.state_reason !== null && (
        <Warning isError={database.state === 'error'}>{database.state_reason.message}</Warning>
      )}
      <Tabs value={tab} onChange={open} keepMounted={false}>
        <Tabs.List ref={list} className={classes.tabList ?? ''}>
          {shown.map((one) => (
            <Tabs.Tab key={one} value={one} data-tab={one}>
              {one === 'tables' && engine.traits.language === 'documents'
                ? words.collections
                : words.tabs[one]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value="connect">
          <ConnectTab database={database} engine={engine} />
        </Tabs.Panel>
        <Tabs.Panel value="query">
          <QueryTab database={database} engine={engine} />
        </Tabs.Panel>
        <Tabs.Panel value="tables">
          <TablesTab database={database} engine={engine} />
        </Tabs.Panel>
        <Tabs.Panel value="charts">
          <ChartsTab database={database} />
        </Tabs.Panel>
        <Tabs.Panel value="log">
          <LogTab database={database} />
        </Tabs.Panel>
        <Tabs.Panel value="manage">
          <ManageTab database={database} engine={engine} />
        </Tabs.Panel>
      </Tabs>
    </>
  );
}

/** The latest log lines of this database. */
function LogTab({ database: { database_id: id, name, state } }: { database: Database }) {
  const log = useQuery(logQuery(id));
  return (
    <LogView
      query={log}
      lead={text.databases.log.lead}
      empty={text.databases.log.empty}
      fileName={`${name}.log`}
      isLive={state === 'ready' || state === 'read_only'}
    />
  );
}
