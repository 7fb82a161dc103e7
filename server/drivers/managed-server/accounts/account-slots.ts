/** Servers of accounts compete for process slots with all databases. */
import type { Clock } from '../../../platform/clock.ts';
import type { BusyChild, IdleChild, SlotUser } from '../../engine-children/child-slots.ts';
import type { AccountServer } from './account-server.ts';

export class AccountSlots implements SlotUser {
  readonly #servers: ReadonlyMap<number, AccountServer>;
  readonly #clock: Pick<Clock, 'monotonic'>;

  /** `servers`: by account. */
  constructor(servers: ReadonlyMap<number, AccountServer>, clock: Pick<Clock, 'monotonic'>) {
    this.#servers = servers;
    this.#clock = clock;
  }

  idle(): readonly IdleChild[] {
    const now = this.#clock.monotonic();
    return [...this.#servers].flatMap(([accountId, { idleSince: since }]) =>
      since === null ? [] : { name: String(accountId), accountId, rank: since, restsMs: now - since },
    );
  }

  busy(): readonly BusyChild[] {
    return [...this.#servers].flatMap(([accountId, { busySince: since }]) =>
      since === null ? [] : { name: String(accountId), accountId, since },
    );
  }

  async endIdle(name: string): Promise<void> {
    await this.#servers.get(Number(name))?.endIdle();
  }

  async endBusy(name: string, why: string): Promise<void> {
    await this.#servers.get(Number(name))?.endBusy(why);
  }
}
