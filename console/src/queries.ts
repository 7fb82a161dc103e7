/** The query client: its defaults, and the handling of errors that no page shows itself. */

import {
  type FetchQueryOptions,
  MutationCache,
  QueryCache,
  QueryClient,
  type QueryKey,
  queryOptions,
  useQuery,
} from '@tanstack/react-query';
import { type Account, CloudError } from '../../sdk/index.ts';
import { cloud, sessionToken } from './cloud.ts';
import { showRefusal } from './parts/notices.tsx';
import { createStore } from './parts/store.ts';

declare module '@tanstack/react-query' {
  interface Register {
    mutationMeta: {
      /** The page shows the error itself. */
      shown?: boolean;
      /** Invalidated after the mutation; a `queryKey` includes longer ones unless `exact`. */
      invalidates?: readonly Invalidated[];
    };
  }
}

export interface Invalidated {
  readonly queryKey: QueryKey;
  readonly exact?: boolean;
}

/**
 * `over`: the user is asked to sign in again, over the current page. `replaced`: because the cookie
 * no longer belongs to this session, which programs on other ports of the host can cause.
 */
export const session = createStore<'alive' | 'over' | 'replaced'>('alive');

/** Whether the cloud pushes changes (`connected`), is polled, or does not respond. */
export const live = createStore<'connected' | 'polling' | 'gone'>('polling');

/** Poll intervals in ms, for changing and for stable data. */
const MOVING_MS = 2000;
const RESTING_MS = 30_000;
/** Poll interval in ms of figures that are not pushed. */
export const FIGURES_MS = 15_000;

/** Poll interval: never while the cloud pushes changes. */
export function watchEvery(isMoving: boolean): number | false {
  if (live.get() === 'connected') return false;
  return isMoving ? MOVING_MS : RESTING_MS;
}

/**
 * The same for a page with figures, such as sizes, for which the cloud sends no updates. Hidden pages read
 * nothing.
 */
export const figuresEvery = (isMoving: boolean): number => watchEvery(isMoving) || FIGURES_MS;

/** Set by the router: shows the sign-in dialog. */
let onSessionEnd: () => unknown = () => {};

export function whenSessionEnds(listener: () => unknown): void {
  onSessionEnd = listener;
}

/** Called by code that uses the cloud outside of queries. */
export function sessionEnded(): void {
  onSessionEnd();
}

/** True if the request was refused because the user is not signed in. */
export function isSignedOut(error: unknown): boolean {
  return error instanceof CloudError && error.status === 401 && error.code !== 'invalid_credentials';
}

/** The state of the session after such a refusal. */
export function endOfSession(error: unknown): 'over' | 'replaced' {
  const isHalf = error instanceof CloudError && error.code === 'incomplete_session';
  return isHalf && sessionToken.read() !== undefined ? 'replaced' : 'over';
}

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // A browser without a network may still reach a cloud on its own machine.
      networkMode: 'always',
      staleTime: 10_000,
      // Errors of the cloud are final; connection errors may be temporary.
      retry: (count, error) => count < 2 && error instanceof CloudError && error.code === 'no_answer',
    },
    mutations: { networkMode: 'always' },
  },
  queryCache: new QueryCache({
    onError: (error) => {
      if (isSignedOut(error)) onSessionEnd();
    },
  }),
  mutationCache: new MutationCache({
    onError: (error, ...[, , { meta }]) => {
      if (isSignedOut(error)) onSessionEnd();
      else if (meta?.shown !== true) showRefusal(error);
    },
    // Runs after the mutation's own onSuccess, which may leave a page whose queries would be
    // refused now.
    onSettled: async (_, error, ...[, , { meta }]) => {
      if (isSignedOut(error)) return;
      const reads = meta?.invalidates?.map(({ queryKey, exact = false }) =>
        queryClient.invalidateQueries({ queryKey, exact }),
      );
      // An error is shown immediately, a success together with the updated data.
      if (error === null) await Promise.all(reads ?? []);
    },
  }),
});

/**
 * For the loader of a route: begins to read missing data, while a link is hovered or the code of
 * the page is loading. It neither waits nor throws: the page shows loading states and errors.
 */
export function readAhead<Data, Shown, Key extends QueryKey>(
  client: QueryClient,
  query: FetchQueryOptions<Data, Error, Shown, Key>,
): void {
  void client.prefetchQuery({ ...query, staleTime: Number.POSITIVE_INFINITY });
}

export const spendCapQuery = queryOptions({
  queryKey: ['billing', 'cap'],
  queryFn: () => cloud.getSpendCap(),
});

/** The signed-in account without its key: each answer with the key has an entry in the audit log. */
export const accountQuery = queryOptions({
  queryKey: ['account'],
  queryFn: () => cloud.getAccount({ api_key: false }),
});

/** Whether the account may read data of the whole cloud: administrators and auditors. */
export const readsAll = (account: Pick<Account, 'is_admin' | 'is_auditor'> | undefined): boolean =>
  account?.is_admin === true || account?.is_auditor === true;

/** For loaders: whether the signed-in account may read data of the whole cloud. */
export const readsAllIn = (client: QueryClient): boolean =>
  readsAll(client.getQueryData(accountQuery.queryKey));

/** True for administrators: only they see problems that only they can fix. */
export function useIsAdmin(): boolean {
  const { data: account } = useQuery(accountQuery);
  return account?.is_admin === true;
}

const STATUS_EVERY_MS = 15_000;

export const statusQuery = queryOptions({
  queryKey: ['status'],
  queryFn: () => cloud.getSystemStatus(),
  refetchInterval: STATUS_EVERY_MS,
});
