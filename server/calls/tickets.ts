/**
 * Tickets: browsers send neither an API key nor a session's token with a WebSocket or a download that they
 * navigate to, and neither may appear in a URL. A ticket stands for its holder at one address, for one
 * minute. Held in memory only.
 */
import type { Clock } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import { randomBase62 } from '../platform/ids.ts';
import type { Principal } from './principal.ts';

const LIFE_MS = 60_000;
/** Per account; when exceeded, the oldest is dropped. */
const MAX_PER_ACCOUNT = 100;
/** 256 bits in base62. */
const CHARACTERS = 43;
/** The query parameter. */
const TICKET = 'ticket';

interface Ticket {
  readonly address: string;
  readonly principal: Principal;
  /** Monotonic clock, ms. */
  readonly endsAt: number;
}

export class Tickets {
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

  /** `url`: path and query, with or without a ticket. `expiresAt`: ms since 1970. */
  issue(principal: Principal, url: string): { ticket: string; expiresAt: number } {
    this.#sweep();
    const { accountId } = principal;
    const own = this.#byAccount.get(accountId) ?? new Set();
    this.#byAccount.set(accountId, own);
    const [oldest] = own;
    if (oldest !== undefined && own.size >= MAX_PER_ACCOUNT) this.#remove(oldest);
    const ticket = randomBase62(CHARACTERS);
    const endsAt = this.#clock.monotonic() + LIFE_MS;
    this.#tickets.set(ticket, { address: addressOf(url), principal, endsAt });
    own.add(ticket);
    return { ticket, expiresAt: this.#clock.now() + LIFE_MS };
  }

  /**
   * For connections: the principal that the ticket was issued to. Invalidates the ticket in any case. Throws
   * `invalid_ticket`.
   */
  redeem(ticket: string, url: string): Principal {
    try {
      return this.holderOf(ticket, url);
    } finally {
      this.#remove(ticket);
    }
  }

  /**
   * For reads: the ticket stays valid until it expires, because browsers ask again for the rest of a download
   * that broke off. Throws `invalid_ticket`.
   */
  holderOf(ticket: string, url: string): Principal {
    this.#sweep();
    const found = this.#tickets.get(ticket);
    if (found !== undefined && found.address === addressOf(url)) return found.principal;
    throw new AppError(
      'invalid_ticket',
      'This ticket is unknown, used, expired or was issued for another path',
      {
        hint: 'Request a new one with POST /api/account/tickets; it is valid for one minute',
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

/** Path and query without the ticket; parameters in one order, so that clients may write them in any. */
function addressOf(url: string): string {
  const [path = '', query = ''] = url.split('?', 2);
  const search = new URLSearchParams(query);
  search.delete(TICKET);
  search.sort();
  return `${path}?${search}`;
}
