/**
 * Tells from what a server sends whether the user of a connection has logged in. What is encrypted tells
 * nothing.
 */

export type Protocol = 'postgresql' | 'mysql';

/** A log-in takes less. */
const MAX_BYTES = 65_536;
const POSTGRESQL_HEAD = 5;
const MYSQL_HEAD = 4;
/** Authentication request of kind 0: AuthenticationOk (PostgreSQL 3.0, message formats). */
const AUTHENTICATION = 'R'.charCodeAt(0);
/** Answers to a request for TLS: yes, no. */
const TLS = 'S'.charCodeAt(0);
const NO_TLS = 'N'.charCodeAt(0);
/** OK_Packet (MySQL, client/server protocol). */
const OK = 0x00;

export class LoginWatch {
  readonly #protocol: Protocol;
  #rest = Buffer.alloc(0);
  #seen = 0;
  /** Packets so far. */
  #count = 0;
  #isBlind = false;

  constructor(protocol: Protocol) {
    this.#protocol = protocol;
  }

  /** Given the next bytes of the server: true once its user is in. False as long as it cannot tell. */
  sees(bytes: Buffer): boolean {
    if (this.#isBlind) return false;
    this.#seen += bytes.length;
    if (this.#seen > MAX_BYTES) return this.#giveUp();
    this.#rest = Buffer.concat([this.#rest, bytes]);
    return this.#protocol === 'postgresql' ? this.#postgresql() : this.#mysql();
  }

  #postgresql(): boolean {
    if (this.#count === 0 && this.#rest[0] === TLS) return this.#giveUp();
    if (this.#count === 0 && this.#rest[0] === NO_TLS && this.#rest.length === 1) {
      this.#rest = Buffer.alloc(0);
      return false;
    }
    while (this.#rest.length >= POSTGRESQL_HEAD) {
      const length = this.#rest.readInt32BE(1) + 1;
      if (length < POSTGRESQL_HEAD) return this.#giveUp();
      if (this.#rest.length < length) return false;
      this.#count++;
      const isIn = this.#rest[0] === AUTHENTICATION && length === 9 && this.#rest.readInt32BE(5) === 0;
      this.#rest = this.#rest.subarray(length);
      if (isIn) return true;
    }
    return false;
  }

  #mysql(): boolean {
    while (this.#rest.length > MYSQL_HEAD) {
      const length = this.#rest.readUIntLE(0, 3) + MYSQL_HEAD;
      if (this.#rest.length < length) return false;
      // The first is the server's greeting.
      const isIn = this.#count > 0 && this.#rest[MYSQL_HEAD] === OK;
      this.#count++;
      this.#rest = this.#rest.subarray(length);
      if (isIn) return true;
    }
    return false;
  }

  #giveUp(): false {
    this.#isBlind = true;
    this.#rest = Buffer.alloc(0);
    return false;
  }
}
