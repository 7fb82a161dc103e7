/** In the child: limits a client that reads a snapshot slowly while the log of its database grows. */
import { hostSpace } from '../../../../libs/sqlite/index.ts';

/** Maximum share of the free disk on a host with little space. */
const LOW_PART = 8;
const LOOK_MS = 500;

/** Rejects once the log has outgrown the limit while the client reads. */
export async function unlessHeldBack(
  tenant: { logBytes(): number },
  logBytes: number,
  taken: Promise<unknown>,
): Promise<void> {
  const heldBack = Promise.withResolvers<never>();
  const look = () => {
    if (tenant.logBytes() <= (hostSpace.isLow() ? logBytes / LOW_PART : logBytes)) return;
    heldBack.reject(
      new Error('the rows are read too slowly: the log of the database grew too large meanwhile'),
    );
  };
  const timer = setInterval(look, LOOK_MS);
  try {
    await Promise.race([taken, heldBack.promise]);
  } finally {
    clearInterval(timer);
    // The client disconnects when the response ends.
    taken.catch(() => {});
  }
}
