/**
 * The databases of an account's server, in a small file for each: they are known while the server
 * sleeps, and changes that it has missed are applied when it wakes.
 */
import * as fs from 'node:fs';
import { join } from 'node:path';
import type { Access, EngineDatabase } from '../../databases/engine.ts';
import { writeDurableFile } from '../../platform/files.ts';

export interface KeptDatabase {
  readonly database: EngineDatabase;
  readonly access: Access;
  /** Whether these settings are applied to the server. */
  readonly isApplied: boolean;
  /** The database's own bytes at the last query. */
  readonly ownBytes: number;
  /** The database is still being moved here. */
  readonly isMoving?: boolean;
}

const NAME = /^d_[a-z0-9]{16}$/;

export class KeptDatabases {
  readonly #folder: string;
  readonly #all = new Map<string, KeptDatabase>();

  /** `folder`: only for these files. */
  constructor(folder: string) {
    this.#folder = folder;
    const names = fs.existsSync(folder) ? fs.readdirSync(folder) : [];
    for (const name of names) if (NAME.test(name)) this.#all.set(name, read(join(folder, name), name));
  }

  get size(): number {
    return this.#all.size;
  }

  all(): KeptDatabase[] {
    return [...this.#all.values()];
  }

  get(name: string): KeptDatabase | undefined {
    return this.#all.get(name);
  }

  /** Whether the stored limits are applied. */
  isLimited({ database, limits }: EngineDatabase): boolean {
    const { connections, statementMs } = this.get(database)?.database.limits ?? limits;
    return connections === limits.connections && statementMs === limits.statementMs;
  }

  has(name: string): boolean {
    return this.#all.has(name);
  }

  /** Valid until the database is stored again. */
  note(kept: KeptDatabase): void {
    this.#all.set(kept.database.database, kept);
  }

  keep(kept: KeptDatabase): void {
    this.note(kept);
    fs.mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    writeDurableFile(join(this.#folder, kept.database.database), `${JSON.stringify(kept)}\n`, 0o600);
  }

  keepAll(): void {
    for (const kept of this.all()) this.keep(kept);
  }

  /** On a full disk the change is only noted. */
  tryKeep(kept: KeptDatabase): void {
    this.note(kept);
    try {
      this.keep(kept);
    } catch {}
  }

  forget(name: string): void {
    this.#all.delete(name);
    fs.rmSync(join(this.#folder, name), { force: true });
  }
}

/** A damaged file counts as applied, until the database changes. */
function read(path: string, name: string): KeptDatabase {
  try {
    return JSON.parse(fs.readFileSync(path, 'utf8'));
  } catch {
    const database = { database: name, databaseId: '' } as EngineDatabase;
    return { database, access: 'full', isApplied: true, ownBytes: 0 };
  }
}
