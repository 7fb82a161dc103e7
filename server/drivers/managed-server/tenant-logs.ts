/**
 * What we did to databases on a server of the operator's, for their owners: a small file of ours per
 * database.
 */
import * as fs from 'node:fs';
import { join } from 'node:path';
import { lastLines } from '../host-process/foreign-files.ts';
import { type RunningStatement, SlowStatements } from './slow-statements.ts';

const NAME = /^d_[a-z0-9]{16}$/;
/** Characters. */
const MAX_ENTRY = 2000;
/** Entries of one database between two flushes; further ones are only counted. */
const MAX_ENTRIES = 100;
const MAX_BYTES = 2 ** 20;
/** What is kept of a log that has grown beyond, bytes. */
const KEPT_BYTES = MAX_BYTES / 2;

export interface LogEntry {
  readonly database: string;
  /** `YYYY-MM-DD HH:MM:SS`, UTC. */
  readonly at: string;
  /** Several lines are indented from the second on. */
  readonly text: string;
}

export interface TenantLogsDeps {
  /** Ours, for these logs alone. */
  readonly folder: string;
}

export class TenantLogs {
  readonly #deps: TenantLogsDeps;
  readonly #slow = new SlowStatements();
  #new = new Map<string, string[]>();

  constructor(deps: TenantLogsDeps) {
    this.#deps = deps;
  }

  /** Given the statements that are slow now, notes those that are over. */
  noteSlow(now: readonly RunningStatement[]): void {
    for (const entry of this.#slow.note(now)) this.add(entry);
  }

  add({ database, at, text }: LogEntry): void {
    if (!NAME.test(database)) return;
    const entries = this.#new.get(database) ?? [];
    this.#new.set(database, entries);
    const short = text.length > MAX_ENTRY ? `${text.slice(0, MAX_ENTRY)} …` : text;
    entries.push(`${at} ${short.trim().replace(/\s*\n\s*/g, '\n\t')}\n`);
  }

  /** Writes down what is new. What cannot be written is left out: a log stops nothing. */
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

  /** The last lines, of at most so many bytes. */
  read(database: string, maxBytes: number): string {
    this.flush();
    const path = this.#pathOf(database);
    return NAME.test(database) && fs.existsSync(path) ? lastLines(path, maxBytes) : '';
  }

  remove(database: string): void {
    // What was told of its end.
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
