/**
 * Detects in the protocols of PostgreSQL and MariaDB whether a client has logged in or requests encryption.
 * Encrypted traffic reveals nothing.
 */

export type Protocol = 'postgresql' | 'mysql';

/** `never`: it will not be seen. */
export type LoginState = 'not yet' | 'in' | 'never';

/** A log-in takes less. */
const MAX_BYTES = 65_536;
const POSTGRESQL_HEAD = 5;
const MYSQL_HEAD = 4;
/** Authentication request of kind 0: AuthenticationOk (PostgreSQL 3.0, message formats). */
const AUTHENTICATION = 'R'.charCodeAt(0);
const AUTHENTICATION_OK_LENGTH = 9;
/** Answers to a request for TLS: yes, no. */
const TLS = 'S'.charCodeAt(0);
const NO_TLS = 'N'.charCodeAt(0);
/** SSLRequest and GSSENCRequest: a length of 8, then one of these. */
const ENCRYPTION_REQUESTS: readonly number[] = [80_877_103, 80_877_104];
const REQUEST_LENGTH = 8;
/** OK_Packet (MySQL, client/server protocol). */
const OK = 0x00;

export class LoginWatch {
  readonly #protocol: Protocol;
  #rest = Buffer.alloc(0);
  #seenBytes = 0;
  /** Messages so far. */
  #count = 0;

  constructor(protocol: Protocol) {
    this.#protocol = protocol;
  }

  /** Given the next bytes of the server; to be called until it says `in` or `never`. */
  sees(bytes: Buffer): LoginState {
    this.#seenBytes += bytes.length;
    if (this.#seenBytes > MAX_BYTES) return 'never';
    this.#rest = Buffer.concat([this.#rest, bytes]);
    return this.#protocol === 'postgresql' ? this.#postgresql() : this.#mysql();
  }

  #postgresql(): LoginState {
    if (this.#count === 0 && this.#rest[0] === TLS) return 'never';
    // A notice begins with the same letter; it never comes first, nor alone.
    if (this.#count === 0 && this.#rest[0] === NO_TLS) this.#rest = this.#rest.subarray(1);
    while (this.#rest.length >= POSTGRESQL_HEAD) {
      const length = this.#rest.readInt32BE(1) + 1;
      if (length < POSTGRESQL_HEAD) return 'never';
      if (this.#rest.length < length) return 'not yet';
      const isRequest = this.#rest[0] === AUTHENTICATION && length === AUTHENTICATION_OK_LENGTH;
      if (isRequest && this.#rest.readInt32BE(POSTGRESQL_HEAD) === 0) return 'in';
      this.#pass(length);
    }
    return 'not yet';
  }

  #mysql(): LoginState {
    while (this.#rest.length > MYSQL_HEAD) {
      const length = this.#rest.readUIntLE(0, 3) + MYSQL_HEAD;
      if (this.#rest.length < length) return 'not yet';
      // The first is the server's greeting.
      if (this.#count > 0 && this.#rest[MYSQL_HEAD] === OK) return 'in';
      this.#pass(length);
    }
    return 'not yet';
  }

  #pass(length: number): void {
    this.#count++;
    this.#rest = this.#rest.subarray(length);
  }
}

/** `N` to a client of PostgreSQL that asks for encryption before it says who it is; null: it does not. */
export function noEncryption(protocol: Protocol, words: Buffer): Buffer | null {
  const isRequest = protocol === 'postgresql' && words.length === REQUEST_LENGTH;
  return isRequest && ENCRYPTION_REQUESTS.includes(words.readInt32BE(4)) ? Buffer.of(NO_TLS) : null;
}
