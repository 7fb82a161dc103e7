/**
 * A server while the disk of the host is nearly full: its databases do not grow, and those of one
 * that grew in the meantime are read-only, as if they had reached their size limits. If a held
 * server refuses deletes too, all of its databases are.
 */
import { type Access, QueryFailed } from '../../../databases/engine.ts';
import { hostDiskFull } from '../../../platform/errors.ts';
import type { KeptDatabases } from '../kept-databases.ts';

export interface Waits {
  /** Message for users. */
  readonly why: string;
  /** The data of the server grew while the disk was nearly full. */
  readonly isGrower: boolean;
}

/** The disk is checked four times a second while it is nearly full: 16 s. */
const MOST_PAUSE = 63;

export interface HeldBackDeps {
  readonly databases: KeptDatabases;
  /** See AccountKind. */
  readonly deletesWhileHeld: boolean;
  /** The server's log, which its account reads. */
  readonly log: { add(line: string): void };
  readonly listener: { readonly name: string };
  /** Receives warnings for the operator. */
  readonly warn: (text: string) => void;
}

export class HeldBack {
  readonly #deps: HeldBackDeps;
  #waits: Waits | null = null;
  /** The server does not have the wanted state yet. */
  #isBehind = false;
  /** Calls of set() until the next attempt, and since the last failure. */
  #pause = 0;
  #passed = 0;

  constructor(deps: HeldBackDeps) {
    this.#deps = deps;
  }

  /** Message for users; null: all may grow. */
  get why(): string | null {
    return this.#waits?.why ?? null;
  }

  /** Whether growth privileges of all users are revoked. */
  get takesRights(): boolean {
    return this.#takesRights(this.#waits);
  }

  /** Whether users have no right to grow. */
  get isWithoutGrowth(): boolean {
    return !this.#deps.deletesWhileHeld && this.takesRights && !this.#isBehind;
  }

  /** Whether all databases must be updated now; for a sleeping server, when it wakes. */
  set(waits: Waits | null): boolean {
    const { databases, listener, warn } = this.#deps;
    if (waits?.why !== this.#waits?.why) this.#tell(waits?.why ?? 'there is space on the disk again');
    const wasGrower = this.#waits?.isGrower === true;
    if ((waits?.isGrower === true) !== wasGrower)
      warn(
        `the server ${listener.name} ${wasGrower ? 'is no longer paused: the disk has space again' : `is paused: ${waits?.why}`}`,
      );
    if (this.#takesRights(waits) !== this.takesRights) {
      this.#isBehind = true;
      this.#pause = 0;
      for (const kept of databases.all()) databases.note({ ...kept, isApplied: false });
    }
    this.#waits = waits;
    return this.#isBehind && ++this.#passed > this.#pause;
  }

  #takesRights(waits: Waits | null): boolean {
    return waits !== null && (waits.isGrower || !this.#deps.deletesWhileHeld);
  }

  #tell(what: string): void {
    try {
      this.#deps.log.add(`Cloudlet: ${what}`);
    } catch {
      // The disk is full.
    }
  }

  brought(): void {
    this.#isBehind = false;
  }

  /** The attempt failed: a refusing server is asked less often. */
  missed(): void {
    this.#pause = Math.min(2 * this.#pause + 1, MOST_PAUSE);
    this.#passed = 0;
  }

  accessOf(access: Access): Access {
    return this.takesRights && access === 'full' ? 'read_only' : access;
  }

  /** Throws the API's error for a failed statement. `codes`: the engine's codes when nothing may grow. */
  refusing(codes: readonly string[]): (error: unknown) => never {
    return (error) => {
      const isRefused = error instanceof QueryFailed && codes.includes(error.engineCode);
      throw this.why !== null && isRefused ? hostDiskFull(error) : error;
    };
  }
}
