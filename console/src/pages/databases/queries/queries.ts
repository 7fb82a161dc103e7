/** Queries of the database pages. Keys begin with `databases`. */
import { queryOptions, replaceEqualDeep } from '@tanstack/react-query';
import type { Database, DatabaseEngine } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { readList } from '../../../parts/tables/read-list.ts';
import { figuresEvery } from '../../../queries.ts';

/** Tabs of a database's page, in this order. */
export const DATABASE_TABS = ['connect', 'query', 'tables', 'charts', 'log', 'manage'] as const;
export type DatabaseTab = (typeof DATABASE_TABS)[number];

const isMoving = ({ state }: Database) => state === 'creating' || state === 'deleting';

export const databasesQuery = queryOptions({
  queryKey: ['databases'],
  queryFn: ({ client, queryKey }) =>
    readList(cloud.listDatabases(), {
      former: client.getQueryData<Database[]>(queryKey),
      keyOf: ({ database_id: id }) => id,
      merge: replaceEqualDeep,
    }),
  structuralSharing: false,
  refetchInterval: ({ state }) => figuresEvery(state.data?.some(isMoving) === true),
});

export const keptDatabasesQuery = queryOptions({
  queryKey: ['databases', 'kept'],
  queryFn: () => cloud.listDatabases({ deleted: true }).all(),
});

export const databaseQuery = (id: string) =>
  queryOptions({
    queryKey: ['databases', id],
    queryFn: () => cloud.getDatabase(id),
    refetchInterval: ({ state }) => figuresEvery(state.data !== undefined && isMoving(state.data)),
  });

export const credentialsQuery = (id: string, tls: boolean) =>
  queryOptions({
    queryKey: ['databases', id, 'credentials', tls],
    queryFn: () => cloud.getDatabaseCredentials(id, { tls }),
    // A password is not kept longer than it is shown.
    gcTime: 0,
  });

export const momentsQuery = (id: string) =>
  queryOptions({ queryKey: ['databases', id, 'moments'], queryFn: () => cloud.listDatabaseMoments(id) });

export const testDatabasesQuery = (id: string) =>
  queryOptions({
    queryKey: ['databases', id, 'test-databases'],
    queryFn: () => cloud.listTestDatabases(id),
  });

export const pointsQuery = (id: string) =>
  queryOptions({ queryKey: ['databases', id, 'points'], queryFn: () => cloud.listDatabasePoints(id) });

export const tablesQuery = (id: string) =>
  queryOptions({ queryKey: ['databases', id, 'tables'], queryFn: () => cloud.listDatabaseTables(id) });

export const savedQuery = (id: string) =>
  queryOptions({ queryKey: ['databases', id, 'saved'], queryFn: () => cloud.listSavedQueries(id) });

export const logQuery = (id: string) =>
  queryOptions({ queryKey: ['databases', id, 'log'], queryFn: () => cloud.getDatabaseLog(id) });

/** Poll interval, because the cloud pushes no updates of the host's preparation. */
const PREPARING_MS = 2000;
const isComing = ({ preparing }: DatabaseEngine) => preparing !== null;

export const enginesQuery = queryOptions({
  queryKey: ['database-engines'],
  queryFn: () => cloud.listDatabaseEngines(),
  refetchInterval: ({ state }) => state.data?.some(isComing) === true && PREPARING_MS,
});
