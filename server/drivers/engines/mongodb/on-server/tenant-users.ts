/** Users and databases on the operator's MongoDB: each user is limited to one database. */
import type { Db, Document, MongoClient } from 'mongodb';
import type { Access } from '../../../../databases/engine.ts';

const USER_EXISTS = 51_003;
const ROLE_EXISTS = 51_002;
const USER_NOT_FOUND = 11;
/** Role for reading and deleting; created in each database. */
const CLEANER = 'cloudlet_cleaner';
const CLEANING = ['remove', 'dropCollection', 'dropIndex'];
/** No client has this address, so a user restricted to it cannot log in. */
const NOWHERE = '255.255.255.255';

/** Our user of a database, which runs queries for its owner. */
export const readerOf = (database: string): string => database.replace('d_', 'r_');
export const writerOf = (database: string): string => database.replace('d_', 'q_');

export class TenantUsers {
  readonly #clientOf: () => MongoClient;
  readonly #mark: () => string;

  /** `mark`: distinguishes this cloud's users from another cloud's on the same server. */
  constructor(client: () => MongoClient, mark: () => string) {
    this.#clientOf = client;
    this.#mark = mark;
  }

  /** Creates the users, or sets these passwords. */
  async make(database: string, passwords: Readonly<Record<string, string>>): Promise<void> {
    const db = this.#client.db(database);
    const privileges = [{ resource: { db: database, collection: '' }, actions: CLEANING }];
    await unless(ROLE_EXISTS, db.command({ createRole: CLEANER, privileges, roles: ['read'] }));
    for (const [user, pwd] of Object.entries(passwords)) {
      const roles = user === readerOf(database) ? ['read'] : ['readWrite'];
      const isNew = await unless(USER_EXISTS, db.command({ createUser: user, ...this.#about(pwd), roles }));
      if (!isNew) await db.command({ updateUser: user, ...this.#about(pwd) });
    }
  }

  /** A recreated user has to log in again on all connections. */
  async renew(database: string, user: string, pwd: string): Promise<void> {
    const db = this.#client.db(database);
    const { users } = await db.command({ usersInfo: user, showAuthenticationRestrictions: true });
    const { roles = [{ role: 'readWrite', db: database }], authenticationRestrictions } = users[0] ?? {};
    await unless(USER_NOT_FOUND, db.command({ dropUser: user }));
    const restrictions = restrictionsOf(authenticationRestrictions);
    await db.command({
      createUser: user,
      ...this.#about(pwd),
      roles,
      authenticationRestrictions: restrictions,
    });
    await this.#endSessions(database, user);
  }

  /** Open sessions are affected from their next command. */
  async allow(database: string, users: readonly string[], access: Access): Promise<void> {
    const db = this.#client.db(database);
    const roles = { full: ['readWrite'], read_only: ['read', CLEANER], none: [] }[access];
    const authenticationRestrictions = access === 'none' ? [{ clientSource: [NOWHERE] }] : [];
    for (const user of users) {
      await db.command({ updateUser: user, roles, authenticationRestrictions });
      if (access !== 'full') await this.#endSessions(database, user);
    }
  }

  async drop(database: string): Promise<void> {
    const db = this.#client.db(database);
    const { users } = await db.command({ usersInfo: 1 });
    await db.command({ dropAllUsersFromDatabase: 1 });
    for (const { user } of users) await this.#endSessions(database, user);
    await db.command({ dropAllRolesFromDatabase: 1 });
    await db.dropDatabase();
  }

  /** Databases of this cloud, found by their users, because the server does not list empty ones. */
  async databases(): Promise<string[]> {
    const { users } = await this.#admin.command({ usersInfo: { forAllDBs: true } });
    const ours = users.filter(({ customData }: Document) => customData?.cloudlet === this.#mark());
    return [...new Set<string>(ours.map(({ db }: Document) => db))];
  }

  get #client(): MongoClient {
    return this.#clientOf();
  }

  get #admin(): Db {
    return this.#client.db('admin');
  }

  #about(pwd: string): Document {
    return { pwd, mechanisms: ['SCRAM-SHA-256'], customData: { cloudlet: this.#mark() } };
  }

  async #endSessions(db: string, user: string): Promise<void> {
    await this.#admin.command({ killAllSessions: [{ user, db }] });
  }
}

/** `usersInfo` nests them one level deeper than `createUser`. */
function restrictionsOf(listed: unknown): unknown[] {
  return Array.isArray(listed) ? listed.flat() : [];
}

/** False: it failed because the state was reached already. */
async function unless(code: number, work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    if ((error as { code?: unknown }).code === code) return false;
    throw error;
  }
}
