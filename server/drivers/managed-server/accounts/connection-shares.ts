/**
 * The connections of a server, which its databases share: each has its own limit, and all together stay
 * within the server's. Neither PostgreSQL nor MariaDB has such a limit: theirs counts unauthenticated
 * connections, too, which would use it up. The limit is set for each user instead, from the current use of
 * the others: a second late, which matters only if several databases fill up at once.
 */
import type { KeptDatabase } from '../kept-databases.ts';
import type { AccountEngine, ServerUse } from '../sql-engine.ts';

interface Limited {
  readonly database: string;
  readonly limits: { readonly connections: number };
}

type Limiting = Pick<AccountEngine, 'setConnections' | 'leastConnections'>;

/** Brings the limits in line with `use`, which was just asked for. */
export async function shareConnections(
  { engine, use }: { readonly engine: Limiting; readonly use: ServerUse },
  databases: readonly KeptDatabase[],
  most: number,
): Promise<void> {
  const open = databases.filter(({ access }) => access !== 'none').map(({ database }) => database);
  for (const [name, share] of newShares(open, use, { most, least: engine.leastConnections }))
    await engine.setConnections(name, share);
}

/** New connection limits of databases by name, if they differ from `use`. */
export function newShares(
  databases: readonly Limited[],
  use: Pick<ServerUse, 'sessions' | 'users'>,
  { most, least }: { readonly most: number; readonly least: number },
): Map<string, number> {
  const free = Math.max(0, most - use.sessions);
  const shares = new Map<string, number>();
  for (const { database, limits } of databases) {
    const has = use.users.get(database);
    if (has === undefined) continue;
    const share = Math.max(least, Math.min(limits.connections, has.sessions + free));
    if (share !== has.most) shares.set(database, share);
  }
  return shares;
}
