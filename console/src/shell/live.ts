/**
 * What the pages show follows the cloud: it tells what changed, and that is read again. Without that
 * connection the pages read now and then by themselves, and say so when the cloud does not answer at all.
 */
import { type ChangedThing, CloudError } from '../../../sdk/index.ts';
import { cloud } from '../cloud.ts';
import { accountQuery, isSignedOut, live, queryClient, sessionEnded } from '../queries.ts';

/** Shorter breaks are not worth a word: a cloud that is started anew takes longer. */
const PATIENCE_MS = 2000;

let waiting: ReturnType<typeof setTimeout> | undefined;
/** The first connection finds pages that were read a moment ago. */
let isFirst = true;

/** Follows the cloud until the result is called. */
export function followCloud(): () => void {
  isFirst = true;
  const leaving = new AbortController();
  const { signal } = leaving;
  const ask = () => void lost(signal);
  const stop = cloud.updates.watch({ sync, changed, lost: ask });
  window.addEventListener('offline', ask, { signal });
  return () => {
    stop();
    leaving.abort();
    found();
  };
}

function found(): void {
  clearTimeout(waiting);
  waiting = undefined;
}

function sync(): void {
  found();
  live.set('connected');
  void queryClient.refetchQueries(isFirst ? { type: 'active', stale: true } : { type: 'active' });
  isFirst = false;
}

/** Whether the cloud is gone, or only this connection, or the session: a call tells. */
async function lost(signal: AbortSignal): Promise<void> {
  const wasConnected = live.get() === 'connected';
  if (wasConnected) live.set('polling');
  try {
    // A call of its own: one under way may have been answered before the connection broke.
    queryClient.setQueryData(accountQuery.queryKey, await cloud.account.get({ signal }));
    found();
    if (live.get() === 'gone') live.set('polling');
    // From here on the pages read by themselves.
    if (wasConnected) void queryClient.refetchQueries({ type: 'active' });
  } catch (error) {
    if (signal.aborted) return;
    if (isSignedOut(error)) sessionEnded();
    const isGone = error instanceof CloudError && error.code === 'no_answer';
    if (isGone) waiting ??= setTimeout(() => live.set('gone'), PATIENCE_MS);
  }
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
    // The lists and those that changed; not the figures, logs and passwords of each.
    void queryClient.invalidateQueries({
      predicate: ({ queryKey: [first, second, ...rest] }) =>
        first === noun && rest.length === 0 && (ids.has(String(second)) || !/-/.test(String(second))),
    });
  }
}
