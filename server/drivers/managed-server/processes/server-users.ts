/**
 * User ids of database servers, counted from the end of a cloud's range. Files on disks belong to
 * them: a number once assigned is never assigned to anything else. server-users.test.ts pins them.
 */
import type { UserRange } from '../../../platform/host/other-users.ts';

/** Maximum client programs of an engine at a time, each with a separate user. */
export const CLIENT_USERS = 10;

/**
 * Distances from the end of the range. An engine has a user that creates the data of new servers,
 * followed by CLIENT_USERS for clients. Those from 1 to 23 were computed from the number of
 * clients, which changed: data of earlier versions may still belong to them.
 */
const FROM_END = { postgresql: 34, mysql: 45, mongodb: 46 } as const;
/** User ids reserved from the servers of accounts. */
const RESERVED = 64;
const SERVERS_EACH = 2;
const NTH = { postgresql: 0, mysql: 1 } as const;

export interface ServerUsers {
  /** First user id of an engine; null: its processes run as our own user. */
  first(engine: keyof typeof FROM_END): number | null;
  /** User id of the server that an account has; null: our own user. */
  ofAccount(engine: keyof typeof NTH): (accountId: number) => number | null;
}

/** `isPrivate`: a restore drill, with one server up at a time. `range` null: there are no other users. */
export function serverUsers(range: UserRange | null, isPrivate: boolean): ServerUsers {
  const end = range === null ? null : range.first + range.count;
  return {
    first: (engine) => (end === null ? null : end - FROM_END[engine]),
    ofAccount: (engine) => (accountId) =>
      end === null ? null : end - 1 - RESERVED - SERVERS_EACH * (isPrivate ? 0 : accountId) - NTH[engine],
  };
}
