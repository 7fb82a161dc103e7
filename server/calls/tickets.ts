/**
 * Tickets: browsers cannot send an API key or a session's token with a WebSocket or a download that
 * they navigate to, and neither may appear in a URL. A ticket represents its holder at one URL, for
 * one minute. It is a sealed text that any node opens, so that issuing one stores nothing, which
 * works even if nothing can be stored; only the use of a single-use ticket is stored.
 */
import { createHash } from 'node:crypto';
import type { Metadata, Reads } from '../metadata/metadata.ts';
import type { Clock } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import { randomBase62 } from '../platform/ids.ts';
import type { Sealer } from '../platform/master-key.ts';
import type { Membership } from '../platform/membership.ts';
import type { Principal } from './principal.ts';
import { ShortTokens } from './short-tokens.ts';

const LIFE_MS = 60_000;
/** The query parameter. */
const TICKET = 'ticket';
const CONTEXT = 'ticket';
/** Longer texts are not tickets. */
const MAX_LENGTH = 2048;

/**
 * The holder of a ticket. A key is represented by its id alone: its limits may be long, and a URL
 * must be short.
 */
export type TicketHolder = Principal | { readonly keyId: string };

interface Content {
  readonly holder: TicketHolder;
  /** Hash of the address. */
  readonly at: string;
  /** Wall time, ms. */
  readonly issuedAt: number;
  /** The issuing process, and the time by its monotonic clock, ms, which nobody can set. */
  readonly by: string;
  readonly tick: number;
}

export interface TicketsDeps {
  readonly clock: Clock;
  readonly sealer: Sealer;
  readonly metadata: Reads & Pick<Metadata, 'commit'>;
  readonly membership: Pick<Membership, 'isShared'>;
}

export class Tickets {
  readonly #deps: TicketsDeps;
  readonly #tokens: ShortTokens;
  readonly #process = randomBase62(22);
  /** Hashes of used tickets, with the monotonic time when they can be dropped; oldest first. */
  readonly #used = new Map<string, number>();

  constructor(deps: TicketsDeps) {
    this.#deps = deps;
    this.#tokens = new ShortTokens(deps);
  }

  /** Maximum used tickets in memory. */
  get size(): number {
    this.#sweep();
    return this.#used.size;
  }

  /** `url`: path and query, with or without a ticket. `expiresAt`: ms since 1970. */
  issue(principal: Principal, url: string): { ticket: string; expiresAt: number } {
    const { clock, sealer } = this.#deps;
    const issuedAt = clock.now();
    const { via, credentialId } = principal;
    const content: Content = {
      holder: via === 'key' ? { keyId: credentialId } : principal,
      at: addressOf(url),
      issuedAt,
      by: this.#process,
      tick: clock.monotonic(),
    };
    const ticket = sealer.seal(Buffer.from(JSON.stringify(content)), CONTEXT).toString('base64url');
    return { ticket, expiresAt: issuedAt + LIFE_MS };
  }

  /**
   * For connections: the holder of the ticket. Consumes it in any case, at all nodes. Rejects with
   * `invalid_ticket`.
   */
  async redeem(ticket: string, url: string): Promise<TicketHolder> {
    const content = this.#open(ticket);
    const isFirst = content !== undefined && (await this.#use(ticket));
    if (isFirst && content.at === addressOf(url)) return content.holder;
    throw invalidTicket();
  }

  /**
   * For reads: the ticket stays valid until it expires, because browsers request the rest of an
   * interrupted download. Throws `invalid_ticket`.
   */
  holderOf(ticket: string, url: string): TicketHolder {
    const content = this.#open(ticket);
    if (content === undefined || content.at !== addressOf(url) || this.#used.has(nameOf(ticket))) {
      throw invalidTicket();
    }
    return content.holder;
  }

  /** Opens the token until it expires. */
  #open(ticket: string): Content | undefined {
    const { clock, sealer } = this.#deps;
    if (ticket.length > MAX_LENGTH) return undefined;
    let content: Content;
    try {
      content = JSON.parse(sealer.unseal(bytesOf(ticket), CONTEXT).toString());
    } catch {
      return undefined;
    }
    const isOurs = content.by === this.#process;
    const age = isOurs ? clock.monotonic() - content.tick : clock.now() - content.issuedAt;
    // The clock of the issuing node may be ahead.
    return Math.abs(age) < LIFE_MS ? content : undefined;
  }

  /** False: it was used before, here or at another node. */
  async #use(ticket: string): Promise<boolean> {
    const { clock, membership } = this.#deps;
    this.#sweep();
    const hash = nameOf(ticket);
    if (this.#used.has(hash)) return false;
    this.#used.set(hash, clock.monotonic() + 2 * LIFE_MS);
    if (!membership.isShared) return true;
    const used = { kind: 'ticket', hash, owner: '', content: 'null', lifeMs: 2 * LIFE_MS } as const;
    return this.#tokens.add(used);
  }

  #sweep(): void {
    const now = this.#deps.clock.monotonic();
    for (const [hash, endsAt] of this.#used) {
      if (endsAt > now) return;
      this.#used.delete(hash);
    }
  }
}

function invalidTicket(): AppError {
  return new AppError(
    'invalid_ticket',
    'This ticket is unknown, used, expired or was issued for another path',
    {
      hint: 'Request a new ticket with POST /api/account/tickets; a ticket is valid for one minute',
    },
  );
}

function bytesOf(ticket: string): Buffer {
  return Buffer.from(ticket, 'base64url');
}

/** The same name for all spellings of the same bytes. */
function nameOf(ticket: string): string {
  return createHash('sha256').update(bytesOf(ticket)).digest('base64url');
}

/** Hash of path and query without the ticket; parameters in one order: clients may write them in any. */
function addressOf(url: string): string {
  const [path = '', query = ''] = url.split('?', 2);
  const search = new URLSearchParams(query);
  search.delete(TICKET);
  search.sort();
  return createHash('sha256').update(`${path}?${search}`).digest('base64url');
}
