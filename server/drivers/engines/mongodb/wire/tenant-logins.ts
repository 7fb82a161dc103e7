/** Logins of databases, each stored in a small file beside the databases. */
import * as fs from 'node:fs/promises';
import { join } from 'node:path';
import type { Access, EngineDatabase } from '../../../../databases/engine.ts';
import { KeyedMutex } from '../../../../platform/concurrency.ts';
import { AppError } from '../../../../platform/errors.ts';
import { unlessMissing, writeDurableFileAsync } from '../../../../platform/files.ts';
import type { ManagedServerDeps } from '../../../managed-server/managed-server.ts';
import type { ScramKeys } from '../../../scram-keys.ts';

export interface Login {
  readonly database: EngineDatabase;
  readonly access: Access;
  readonly keys: ScramKeys;
}

const FIX = 'Give the database a new password: POST /api/databases/{id}/credentials/rotate';
const NAME = /^d_[a-z0-9]{16}$/;

export class TenantLogins {
  readonly #folder: string;
  readonly #alarms: ManagedServerDeps['alarms'];
  readonly #locks = new KeyedMutex();
  readonly #known = new Map<string, Login>();

  /** `folder` need not be there yet. */
  constructor(folder: string, alarms: ManagedServerDeps['alarms']) {
    this.#folder = folder;
    this.#alarms = alarms;
  }

  /**
   * The login of the database with that name; null: none. The same object until it changes. Throws
   * `engine_unavailable` if it is damaged.
   */
  async find(name: string): Promise<Login | null> {
    if (!NAME.test(name)) return null;
    return this.#known.get(name) ?? this.#locks.run(name, () => this.#read(name));
  }

  /**
   * Updates some members of a login; others do not change. `keys` must be among the first, and
   * repair a damaged file.
   */
  async keep(database: EngineDatabase, change: Partial<Omit<Login, 'database'>>): Promise<void> {
    await this.#locks.run(database.database, async () => {
      const before = await this.#read(database.database).catch((error) => {
        if (change.keys === undefined) throw error;
        return null;
      });
      const keys = change.keys ?? before?.keys;
      if (keys === undefined) throw new Error('a login needs keys');
      const access = change.access ?? before?.access ?? 'full';
      await this.#write({ database, access, keys });
    });
  }

  async remove(name: string): Promise<void> {
    await this.#locks.run(name, async () => {
      this.#known.delete(name);
      this.#alarms.clear(alarmOf(name));
      await fs.rm(this.#path(name), { force: true });
    });
  }

  async #read(name: string): Promise<Login | null> {
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const text = await fs.readFile(this.#path(name), 'utf8').catch(unlessMissing);
    if (text === undefined) return null;
    const login = parseLogin(text);
    if (login === null) throw this.#damaged(name);
    this.#known.set(name, login);
    return login;
  }

  #damaged(name: string): AppError {
    const what = 'is damaged: drivers cannot log in';
    this.#alarms.raise(alarmOf(name), `The log-in of the MongoDB database ${name} ${what}`, FIX);
    return new AppError('engine_unavailable', `The log-in of this database ${what}`, { hint: FIX });
  }

  async #write(login: Login): Promise<void> {
    const name = login.database.database;
    const path = this.#path(name);
    const { iterations, salt, storedKey, serverKey } = login.keys;
    const keys = {
      iterations,
      salt: salt.toString('base64'),
      storedKey: storedKey.toString('base64'),
      serverKey: serverKey.toString('base64'),
    };
    await fs.mkdir(this.#folder, { recursive: true, mode: 0o700 });
    await writeDurableFileAsync(path, JSON.stringify({ ...login, keys }), 0o600);
    this.#known.set(name, login);
    this.#alarms.clear(alarmOf(name));
  }

  #path(name: string): string {
    return join(this.#folder, `${name}.json`);
  }
}

/** null: it is malformed. */
function parseLogin(text: string): Login | null {
  try {
    const { keys, ...rest } = JSON.parse(text) as Login & { keys: Record<keyof ScramKeys, string> };
    const [salt, storedKey, serverKey] = [keys.salt, keys.storedKey, keys.serverKey].map((bytes) =>
      Buffer.from(String(bytes), 'base64'),
    ) as [Buffer, Buffer, Buffer];
    // Older files do not name the owner of the database.
    const database = { ...rest.database, accountId: rest.database.accountId ?? -rest.database.number };
    const { access } = rest;
    return { database, access, keys: { iterations: Number(keys.iterations), salt, storedKey, serverKey } };
  } catch {
    return null;
  }
}

function alarmOf(name: string): string {
  return `mongodb_login_damaged_${name}`;
}
