/**
 * Console tickets: browsers cannot send an API key with a WebSocket, and a key must not appear in a URL. A
 * ticket is single-use and valid for one minute and one machine. Held in memory only.
 */
import type { Principal } from '../../calls/principal.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { randomBase62 } from '../../platform/ids.ts';

const LIFE_MS = 60_000;
/** Unused tickets per account; when exceeded, the oldest is dropped. */
const MAX_PER_ACCOUNT = 100;
/** 256 bits in base64url. */
const CHARACTERS = 43;

interface Ticket {
  readonly vmId: string;
  readonly principal: Principal;
  /** Monotonic clock, ms. */
  readonly endsAt: number;
}

export class ConsoleTickets {
  readonly #clock: Clock;
  /** Oldest first, which is also the order of expiry. */
  readonly #tickets = new Map<string, Ticket>();
  readonly #byAccount = new Map<number, Set<string>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Number of valid tickets. */
  get size(): number {
    this.#sweep();
    return this.#tickets.size;
  }

  /** `expiresAt`: ms since 1970. */
  issue(principal: Principal, vmId: string): { ticket: string; expiresAt: number } {
    this.#sweep();
    const { accountId } = principal;
    const own = this.#byAccount.get(accountId) ?? new Set();
    this.#byAccount.set(accountId, own);
    const [oldest] = own;
    if (oldest !== undefined && own.size >= MAX_PER_ACCOUNT) this.#remove(oldest);
    const ticket = randomBase62(CHARACTERS);
    this.#tickets.set(ticket, { vmId, principal, endsAt: this.#clock.monotonic() + LIFE_MS });
    own.add(ticket);
    return { ticket, expiresAt: this.#clock.now() + LIFE_MS };
  }

  /**
   * Returns the principal that the ticket was issued to, and invalidates the ticket in any case. Throws
   * `invalid_ticket`.
   */
  redeem(ticket: string, vmId: string): Principal {
    this.#sweep();
    const found = this.#tickets.get(ticket);
    this.#remove(ticket);
    if (found?.vmId === vmId) return found.principal;
    throw new AppError(
      'invalid_ticket',
      'This ticket is unknown, used, expired or issued for another virtual machine',
      {
        hint: 'Request a new ticket with POST /api/vms/{vm_id}/console-tickets',
      },
    );
  }

  #sweep(): void {
    const now = this.#clock.monotonic();
    for (const [ticket, { endsAt }] of this.#tickets) {
      if (endsAt > now) return;
      this.#remove(ticket);
    }
  }

  #remove(ticket: string): void {
    const found = this.#tickets.get(ticket);
    if (!found) return;
    this.#tickets.delete(ticket);
    const own = this.#byAccount.get(found.principal.accountId);
    own?.delete(ticket);
    if (own?.size === 0) this.#byAccount.delete(found.principal.accountId);
  }
}
