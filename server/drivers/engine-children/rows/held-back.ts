/** In the child: a client that reads a snapshot slowly, while its database's log grows. */
import { hostSpace } from '../../../../libs/sqlite/index.ts';

/** On a host whose disk is low: this part of it. */
const LOW_PART = 8;
const LOOK_MS = 500;

/** Rejects once the log is longer while the client takes its time. */
export async function unlessHeldBack(
  tenant: { logBytes(): number },
  logBytes: number,
  taken: Promise<unknown>,
): Promise<void> {
  const heldBack = Promise.withResolvers<never>();
  const look = () => {
    if (tenant.logBytes() <= (hostSpace.isLow() ? logBytes / LOW_PART : logBytes)) return;
    heldBack.reject(new Error('the rows are read too slowly: too much is written to the database meanwhile'));
  };
  const timer = setInterval(look, LOOK_MS);
  try {
    await Promise.race([taken, heldBack.promise]);
  } finally {
    clearInterval(timer);
    // The client leaves when the answer ends.
    taken.catch(() => {});
  }
}
