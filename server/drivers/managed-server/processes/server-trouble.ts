/** Why a database server does not start, for the operator and for the next Cloudlet. */
import * as fs from 'node:fs';
import { join } from 'node:path';
import { writeDurableFile } from '../../../platform/files.ts';

const FILE = 'trouble';

/** The reason why the server of an account does not start; the next Cloudlet knows it too. */
export class StartTrouble {
  readonly #path: string;
  #what: string | null;

  /** `folder`: of the account's server; it need not exist. */
  constructor(folder: string) {
    this.#path = join(folder, FILE);
    this.#what = fs.existsSync(this.#path) ? fs.readFileSync(this.#path, 'utf8') : null;
  }

  get what(): string | null {
    return this.#what;
  }

  /** `what`: without names of files; null: it starts. */
  note(what: string | null): void {
    if (what === this.#what) return;
    this.#what = what;
    try {
      if (what === null) fs.rmSync(this.#path, { force: true });
      else writeDurableFile(this.#path, what, 0o600);
    } catch {
      // The disk is full: the next Cloudlet finds the problem again.
    }
  }
}

/** Last output of a server, as the cause of an error: only for the operator. */
export class ServerWords extends Error {}

/** An error with the server's output. */
export function withReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, cause } = error;
  return cause instanceof ServerWords ? `${message}: ${cause.message}` : message;
}
