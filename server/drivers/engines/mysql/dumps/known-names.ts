/** Names of a dump that a load remembers: a limited number of them, because a user chooses them. */
const MOST = 100_000;
/** Longer ones are no names of the server. */
const MOST_CHARACTERS = 256;

export class KnownNames {
  readonly #names = new Set<string>();

  add(name: string): void {
    if (this.#names.size < MOST && name.length <= MOST_CHARACTERS) this.#names.add(copied(name));
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  delete(name: string): void {
    this.#names.delete(name);
  }
}

/** A part of a text would keep all of it in memory. */
export function copied(text: string): string {
  return Buffer.from(text).toString();
}
