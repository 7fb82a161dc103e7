/** `/databases` is the list, `/databases/new` the form, `/databases/db-1?tab=query` a database. */

import { CircleStackIcon, CommandLineIcon, PlusIcon } from '@heroicons/react/24/outline';
import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import type { DatabaseRowFilter, DatabaseRowSort } from '../../../../sdk/index.ts';
import { finder, firstOf, type PaletteEntry, type PaletteSource } from '../../palette/entries.ts';
import { listSearch } from '../../parts/tables/list-view.ts';
import { queryClient, readAhead } from '../../queries.ts';
import { shellRoute } from '../../shell/base-routes.ts';
import { text } from '../../texts/text.ts';
import {
  DATABASE_TABS,
  type DatabaseTab,
  databaseQuery,
  databasesQuery,
  enginesQuery,
  keptDatabasesQuery,
} from './queries/queries.ts';
import { filtersOf, sortOf } from './rows/filters.ts';

const SPANS = ['hour', 'day', 'month'] as const;

interface DatabaseSearch {
  readonly tab?: DatabaseTab;
  /** Time span of the charts. */
  readonly span?: (typeof SPANS)[number];
  /** The table or collection that is open. */
  readonly table?: string;
  /** The view of it; default: its rows. */
  readonly view?: 'structure' | 'diagram';
  readonly where?: readonly DatabaseRowFilter[];
  readonly by?: DatabaseRowSort;
  /** A filter of MongoDB, as typed. */
  readonly match?: string;
}

function databaseSearch({ tab, span, table, view, match, ...rows }: Record<string, unknown>): DatabaseSearch {
  const [where, by] = [filtersOf(rows.where), sortOf(rows.by)];
  const knownTab = DATABASE_TABS.find((one) => one === tab);
  const knownSpan = SPANS.find((one) => one === span);
  return {
    ...(knownTab === undefined ? {} : { tab: knownTab }),
    ...(knownSpan === undefined ? {} : { span: knownSpan }),
    ...(typeof table === 'string' ? { table } : {}),
    ...(view === 'structure' || view === 'diagram' ? { view } : {}),
    ...(where === undefined ? {} : { where }),
    ...(by === undefined ? {} : { by }),
    ...(typeof match === 'string' ? { match } : {}),
  };
}

interface NewSearch {
  readonly engine?: string;
}

export const databaseRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/databases',
    validateSearch: listSearch,
    loader: ({ context: { queryClient } }) => {
      readAhead(queryClient, databasesQuery);
      readAhead(queryClient, keptDatabasesQuery);
      readAhead(queryClient, enginesQuery);
    },
    component: lazyRouteComponent(() => import('./databases-page.tsx'), 'DatabasesPage'),
  }),
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/databases/new',
    validateSearch: ({ engine }: Record<string, unknown>): NewSearch =>
      typeof engine === 'string' ? { engine } : {},
    loader: ({ context: { queryClient } }) => {
      readAhead(queryClient, enginesQuery);
      readAhead(queryClient, databasesQuery);
    },
    component: lazyRouteComponent(() => import('./new-database-page.tsx'), 'NewDatabasePage'),
  }),
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/databases/$database',
    validateSearch: databaseSearch,
    loader: ({ context: { queryClient }, params: { database } }) => {
      readAhead(queryClient, databaseQuery(database));
      readAhead(queryClient, enginesQuery);
    },
    component: lazyRouteComponent(() => import('./database-page.tsx'), 'DatabasePage'),
  }),
] as const;

const FOUND_MAX = 8;
const { databases } = text;

export const databasesPalette: PaletteSource = {
  actions: [
    { id: 'create-database', label: databases.create, icon: PlusIcon, open: { to: '/databases/new' } },
  ],
  find: async (words) => {
    const [all, engines] = await Promise.all([
      queryClient.fetchQuery(databasesQuery),
      queryClient.fetchQuery(enginesQuery),
    ]);
    const titleOf = new Map(engines.map((one) => [one.engine, one.title]));
    const isMeant = finder(words);
    return firstOf(all, FOUND_MAX, (database) =>
      isMeant(`${database.name} ${databases.queryOf(database.name)}`) ? database : undefined,
    )
      .flatMap(({ database_id: database, name, engine }): PaletteEntry[] => [
        {
          id: database,
          label: name,
          note: `${databases.database} · ${titleOf.get(engine) ?? engine}`,
          icon: CircleStackIcon,
          open: { to: '/databases/$database', params: { database } },
        },
        {
          id: `query-${database}`,
          label: databases.queryOf(name),
          icon: CommandLineIcon,
          open: { to: '/databases/$database', params: { database }, search: { tab: 'query' } },
        },
      ])
      .filter(({ label }) => isMeant(label))
      .slice(0, FOUND_MAX);
  },
};
