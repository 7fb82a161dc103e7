/** A small log per database for its owner, with what Cloudlet saw and did there. */
import * as fs from 'node:fs';
import { join } from 'node:path';
import { lastLines } from '../../host-process/foreign-files.ts';

const NAME = /^d_[a-z0-9]{16}$/;
/** Characters. */
const MAX_ENTRY = 2000;
/** Maximum entries of one database between flushes; further ones are counted. */
const MAX_ENTRIES = 100;
const MAX_BYTES = 2 ** 20;
/** Bytes kept of a log that exceeds the limit. */
const KEPT_BYTES = MAX_BYTES / 2;

/** Statements from this duration on are slow. */
export const SLOW_MS = 1000;
/** Maximum length of the statement's text, characters. */
export const SLOW_TEXT = 1000;

export interface RunningStatement {
  /** Unique key of the statement. */
  readonly key: string;
  readonly database: string;
  /** Now. */
  readonly at: string;
  /** So far. */
  readonly ms: number;
  readonly text: string;
}

export interface LogEntry {
  readonly database: string;
  /** `YYYY-MM-DD HH:MM:SS`, UTC. */
  readonly at: string;
  /** Several lines are indented from the second on. */
  readonly text: string;
}

export interface TenantLogsDeps {
  /** Cloudlet's directory for these logs only. */
  readonly folder: string;
}

export class TenantLogs {
  readonly #deps: TenantLogsDeps;
  #slow = new Map<string, RunningStatement>();
  #new = new Map<string, string[]>();

  constructor(deps: TenantLogsDeps) {
    this.#deps = deps;
  }

  /** Takes the currently slow statements, and records those that ended, with their last known duration. */
  noteSlow(now: readonly RunningStatement[]): void {
    const before = this.#slow;
    this.#slow = new Map(now.map((statement) => [statement.key, statement]));
    for (const { key, database, at, ms, text } of before.values())
      if (!this.#slow.has(key))
        this.add({ database, at, text: `SLOW: ${(ms / 1000).toFixed(1)} s or more: ${text}` });
  }

  add({ database, at, text }: LogEntry): void {
    if (!NAME.test(database)) return;
    const entries = this.#new.get(database) ?? [];
    this.#new.set(database, entries);
    const short = text.length > MAX_ENTRY ? `${text.slice(0, MAX_ENTRY)} …` : text;
    entries.push(`${at} ${short.trim().replace(/\s*\n\s*/g, '\n\t')}\n`);
  }

  /** Writes new entries. Errors are ignored: a log must not stop anything. */
  flush(): void {
    const added = this.#new;
    this.#new = new Map();
    for (const [database, entries] of added) {
      const more = entries.length - MAX_ENTRIES;
      const text = entries.slice(0, MAX_ENTRIES).join('') + (more > 0 ? `… and ${more} more\n` : '');
      try {
        this.#append(this.#pathOf(database), text);
      } catch {
        // The disk is full.
      }
    }
  }

  /** The last lines, up to this many bytes. */
  read(database: string, maxBytes: number): string {
    this.flush();
    const path = this.#pathOf(database);
    return NAME.test(database) && fs.existsSync(path) ? lastLines(path, maxBytes) : '';
  }

  remove(database: string): void {
    // Entries about its end must not create the file again.
    this.flush();
    if (NAME.test(database)) fs.rmSync(this.#pathOf(database), { force: true });
  }

  #append(path: string, text: string): void {
    fs.mkdirSync(this.#deps.folder, { recursive: true, mode: 0o700 });
    fs.appendFileSync(path, text, { mode: 0o600 });
    if (fs.statSync(path).size <= MAX_BYTES) return;
    fs.writeFileSync(`${path}.new`, lastLines(path, KEPT_BYTES), { mode: 0o600 });
    fs.renameSync(`${path}.new`, path);
  }

  #pathOf(database: string): string {
    return join(this.#deps.folder, `${database}.log`);
  }
}
