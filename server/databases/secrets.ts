/** Database passwords: creation, sealing, and comparison by hash. */
import { createHash } from 'node:crypto';
import { randomBase62 } from '../platform/ids.ts';
import type { Sealer } from '../platform/master-key.ts';

/** About 190 bits, of characters that need no escaping in a URL, a shell or SQL. */
const PASSWORD_CHARACTERS = 32;

export class DatabaseSecrets {
  readonly #sealer: Sealer;

  constructor(deps: { readonly sealer: Sealer }) {
    this.#sealer = deps.sealer;
  }

  newPassword(): string {
    return randomBase62(PASSWORD_CHARACTERS);
  }

  seal(databaseId: string, password: string): Buffer {
    return this.#sealer.seal(Buffer.from(password, 'utf8'), contextOf(databaseId));
  }

  unseal(databaseId: string, sealed: Uint8Array): string {
    return this.#sealer.unseal(sealed, contextOf(databaseId)).toString('utf8');
  }
}

function contextOf(databaseId: string): string {
  return `database-password:${databaseId}`;
}

/** Unsalted: a random password cannot be guessed. */
export function hashPassword(password: string): Buffer {
  return createHash('sha256').update(password).digest();
}
