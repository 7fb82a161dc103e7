/** Profiles: the clouds that the user is signed in to, and the current one. */
import { accessSync, constants, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { configFolder } from '../environment.ts';
import { ClientError, EXIT, tell } from '../failures.ts';
import { readPrivateFile, writePrivateFile } from './private-file.ts';

export interface S3Keys {
  readonly endpoint: string;
  readonly access_key_id: string;
  readonly secret_access_key: string;
}

export interface Profile {
  readonly url: string;
  readonly key: string;
  readonly username: string;
  /** Id of the key created by `login`, which `logout` revokes; null: the user's own key. */
  readonly key_id: string | null;
  readonly s3: S3Keys | null;
}

interface Stored {
  readonly current: string | null;
  readonly profiles: Readonly<Record<string, Profile>>;
}

export class Profiles {
  readonly #path: string;
  readonly #stored: Stored;

  private constructor(path: string, stored: Stored) {
    this.#path = path;
    this.#stored = stored;
  }

  /** Profiles of this user. Throws ClientError if the file is corrupt or readable by others. */
  static read(path: string = join(configFolder(), 'config.json')): Profiles {
    const text = readPrivateFile(path);
    if (text === undefined) return new Profiles(path, { current: null, profiles: {} });
    try {
      const { current = null, profiles } = JSON.parse(text) as Stored;
      if (typeof profiles === 'object') return new Profiles(path, { current, profiles });
    } catch {
      // Reported below, without the file's content.
    }
    throw new ClientError(`${path} is corrupt`, EXIT.failure, 'Remove the file and log in again');
  }

  get current(): string | null {
    return this.#stored.current;
  }

  get names(): string[] {
    return Object.keys(this.#stored.profiles);
  }

  find(name: string): Profile | undefined {
    return Object.hasOwn(this.#stored.profiles, name) ? this.#stored.profiles[name] : undefined;
  }

  /** Throws ClientError if no profile has that name. */
  get(name: string): Profile {
    const profile = this.find(name);
    if (profile !== undefined) return profile;
    const known =
      this.names.length === 0 ? 'there are no profiles' : `available profiles: ${this.names.join(', ')}`;
    throw new ClientError(`no profile ${name}; ${known}`, EXIT.notFound);
  }

  /** Throws errors that would prevent storing, except a full disk. */
  assertWritable(): void {
    const folder = dirname(this.#path);
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      accessSync(folder, constants.W_OK);
    } catch (error) {
      const why = tell(error).lines.join(' ');
      const hint =
        'Set HOME or XDG_CONFIG_HOME to a folder that you own, or use CLOUDLET_URL and CLOUDLET_API_KEY';
      throw new ClientError(`the profile cannot be stored: ${why}`, EXIT.forbidden, hint);
    }
  }

  /** Stores a profile and makes it the current one. */
  put(name: string, profile: Profile): void {
    this.#write({ current: name, profiles: { ...this.#stored.profiles, [name]: profile } });
  }

  use(name: string): void {
    this.get(name);
    this.#write({ ...this.#stored, current: name });
  }

  /** After removing the current profile there is none, so that another cloud is not used by accident. */
  remove(name: string): void {
    const { [name]: _, ...profiles } = this.#stored.profiles;
    this.#write({ current: this.current === name ? null : this.current, profiles });
  }

  #write(stored: Stored): void {
    writePrivateFile(this.#path, `${JSON.stringify(stored, null, 2)}\n`);
  }
}
