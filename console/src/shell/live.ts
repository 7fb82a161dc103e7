/**
 * Live updates: the cloud reports changes over a WebSocket, and their queries are read again.
 * Without the connection the pages poll, and show a notice if the cloud does not respond at all.
 */
import { type ChangedThing, CloudError } from '../../../sdk/index.ts';
import { cloud } from '../cloud.ts';
import { accountQuery, isSignedOut, live, queryClient, sessionEnded } from '../queries.ts';

/** Shorter interruptions are not reported: a restart of the cloud takes longer. */
const PATIENCE_MS = 2000;
/** Poll interval while the connection is lost. */
const ASKED_EVERY_MS = 3000;

let waiting: ReturnType<typeof setTimeout> | undefined;
let next: ReturnType<typeof setTimeout> | undefined;
let asking: AbortController | undefined;
/** When the first connection opens, the pages have just been read. */
let isFirst = true;
/** The connection was lost, and the pages do not poll yet. */
let isUnread = false;

/** Follows the cloud until the result is called. */
export function followCloud(): () => void {
  isFirst = true;
  const ask = () => void lost();
  const stop = cloud.watchUpdates({ sync, changed, lost: ask });
  window.addEventListener('offline', ask);
  return () => {
    stop();
    window.removeEventListener('offline', ask);
    stopAsking();
  };
}

function stopAsking(): void {
  asking?.abort();
  clearTimeout(next);
  answered();
}

function answered(): void {
  clearTimeout(waiting);
  waiting = undefined;
  if (live.get() === 'gone') live.set('polling');
}

function sync(): void {
  stopAsking();
  live.set('connected');
  void queryClient.refetchQueries(isFirst ? { type: 'active', stale: true } : { type: 'active' });
  isFirst = false;
  isUnread = false;
}

/**
 * Whether the cloud is gone, or only this connection, or the session: determined by repeated calls. Only the
 * latest counts, because an earlier one may succeed although the network has failed since.
 */
async function lost(): Promise<void> {
  if (live.get() === 'connected') {
    live.set('polling');
    isUnread = true;
  }
  asking?.abort();
  clearTimeout(next);
  asking = new AbortController();
  const { signal } = asking;
  waiting ??= setTimeout(() => live.set('gone'), PATIENCE_MS);
  try {
    const account = await cloud.getAccount({ api_key: false }, { signal });
    signal.throwIfAborted();
    queryClient.setQueryData(accountQuery.queryKey, account);
    answered();
    if (isUnread) void queryClient.refetchQueries({ type: 'active' });
    isUnread = false;
  } catch (error) {
    if (signal.aborted) return;
    const isGone = error instanceof CloudError && error.code === 'no_answer';
    if (!isGone) answered();
    if (isSignedOut(error)) sessionEnded();
  }
  next = setTimeout(lost, ASKED_EVERY_MS);
}

function changed(things: readonly ChangedThing[]): void {
  const kinds = new Set(things.map(({ kind }) => kind));
  if (kinds.has('balance')) {
    for (const queryKey of [accountQuery.queryKey, ['billing']])
      void queryClient.invalidateQueries({ queryKey });
  }
  for (const [kind, noun] of [
    ['vm', 'vms'],
    ['database', 'databases'],
    ['recovery_point', 'recovery'],
  ] as const) {
    if (!kinds.has(kind)) continue;
    const ids = new Set(things.filter((thing) => thing.kind === kind).map(({ id }) => id));
    // Lists and changed resources, without their figures, logs and passwords.
    void queryClient.invalidateQueries({
      predicate: ({ queryKey: [first, second, ...rest] }) =>
        first === noun && rest.length === 0 && (ids.has(String(second)) || !/-/.test(String(second))),
    });
  }
}
