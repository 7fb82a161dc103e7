/** What others need of the master key: encryption of secrets that must be shown or used again. */
export interface Sealer {
  /** Encrypts under the master key. `context` is authenticated: the same one is needed to unseal. */
  seal(plaintext: Uint8Array, context: string): Buffer;
  /** Decrypts. Throws when the bytes, the context or the master key are not those of seal. */
  unseal(sealed: Uint8Array, context: string): Buffer;
}
