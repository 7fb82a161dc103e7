/** Who may log in to which database, kept beside the databases: one small file each. */
import * as fs from 'node:fs/promises';
import { join } from 'node:path';
import type { Access, EngineDatabase } from '../../../databases/engine.ts';
import { KeyedMutex } from '../../../platform/keyed-mutex.ts';
import type { ScramKeys } from '../../scram-keys.ts';

export interface Login {
  readonly database: EngineDatabase;
  readonly access: Access;
  readonly keys: ScramKeys;
}

const NAME = /^d_[a-z0-9]{16}$/;

export class TenantLogins {
  readonly #folder: string;
  readonly #locks = new KeyedMutex();
  readonly #known = new Map<string, Login>();

  /** `folder` need not be there yet. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The login of the database of that name; null: there is none. The same object until it changes. */
  async find(name: string): Promise<Login | null> {
    if (!NAME.test(name)) return null;
    return this.#known.get(name) ?? this.#locks.run(name, () => this.#read(name));
  }

  /** Keeps what is given of a login, and the rest as it was. `keys` must be among the first. */
  async keep(database: EngineDatabase, change: Partial<Omit<Login, 'database'>>): Promise<void> {
    await this.#locks.run(database.database, async () => {
      const before = await this.#read(database.database);
      const keys = change.keys ?? before?.keys;
      if (keys === undefined) throw new Error('a login needs keys');
      const access = change.access ?? before?.access ?? 'full';
      await this.#write({ database, access, keys });
    });
  }

  async remove(name: string): Promise<void> {
    await this.#locks.run(name, async () => {
      this.#known.delete(name);
      await fs.rm(this.#path(name), { force: true });
    });
  }

  async #read(name: string): Promise<Login | null> {
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const text = await fs.readFile(this.#path(name), 'utf8').catch(unlessMissing);
    if (text === undefined) return null;
    const { keys, ...rest } = JSON.parse(text) as Login & { keys: Record<keyof ScramKeys, string> };
    const [salt, storedKey, serverKey] = [keys.salt, keys.storedKey, keys.serverKey].map((bytes) =>
      Buffer.from(String(bytes), 'base64'),
    ) as [Buffer, Buffer, Buffer];
    const login = { ...rest, keys: { iterations: Number(keys.iterations), salt, storedKey, serverKey } };
    this.#known.set(name, login);
    return login;
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
    await fs.writeFile(`${path}.new`, JSON.stringify({ ...login, keys }), { mode: 0o600, flush: true });
    await fs.rename(`${path}.new`, path);
    await syncFolder(this.#folder);
    this.#known.set(name, login);
  }

  #path(name: string): string {
    return join(this.#folder, `${name}.json`);
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await fs.open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function unlessMissing(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
}
