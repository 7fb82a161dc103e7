/**
 * What changed, told at once to who watches: that a thing changed, not what it is now. Nothing is kept, so
 * who was away reads everything again.
 */
import type { ResourceKind, Told } from '../metadata/metadata.ts';
import { AppError } from '../platform/errors.ts';
import { type Permission, type Principal, permits } from './principal.ts';

/** What one must be allowed to read to be told of it. */
const NEEDED: Readonly<Record<ResourceKind, Permission>> = {
  vm: 'compute:read',
  database: 'databases:read',
  balance: 'billing:read',
  operation: 'account:read',
  recovery_point: 'admin',
};
/** Changes that come within so long of each other are told together. */
const GATHER_MS = 100;
/** Beyond so many things it is only told that much has changed. */
const GATHER_MAX = 200;

export interface Changed {
  readonly kind: ResourceKind;
  readonly id: string;
}

/** Whoever watches. Its methods must neither throw nor keep the sender waiting. */
export interface Watcher {
  changed(things: readonly Changed[]): void;
  /** More changed than can be named. */
  lost(): void;
}

interface Watch {
  readonly principal: Principal;
  readonly watcher: Watcher;
  readonly gathered: Map<string, Changed>;
  timer: NodeJS.Timeout | undefined;
}

export class Updates {
  readonly #watches = new Map<number, Set<Watch>>();
  readonly #maxPerAccount: number;

  constructor(deps: { readonly maxPerAccount: number }) {
    this.#maxPerAccount = deps.maxPerAccount;
  }

  /** Tells `watcher` until the result is called. Throws `overloaded`: the account has enough of them. */
  watch(principal: Principal, watcher: Watcher): () => void {
    const { accountId } = principal;
    const own = this.#watches.get(accountId) ?? new Set<Watch>();
    if (own.size >= this.#maxPerAccount) {
      const detail = `One account watches its changes at most ${this.#maxPerAccount} times at once`;
      throw new AppError('overloaded', detail, { hint: 'Close a connection that is no longer needed' });
    }
    const watch: Watch = { principal, watcher, gathered: new Map(), timer: undefined };
    this.#watches.set(accountId, own.add(watch));
    return () => {
      clearTimeout(watch.timer);
      own.delete(watch);
      if (own.size === 0 && this.#watches.get(accountId) === own) this.#watches.delete(accountId);
    };
  }

  /** What belongs to no account is told to all who may read it. */
  tell({ accountId, kind, id }: Told): void {
    const places = accountId === null ? this.#watches.values() : [this.#watches.get(accountId) ?? []];
    for (const place of places) {
      for (const watch of place) {
        if (permits(watch.principal, NEEDED[kind])) gather(watch, { kind, id });
      }
    }
  }
}

function gather(watch: Watch, thing: Changed): void {
  watch.gathered.set(`${thing.kind} ${thing.id}`, thing);
  watch.timer ??= setTimeout(() => flush(watch), GATHER_MS).unref();
}

function flush(watch: Watch): void {
  const things = [...watch.gathered.values()];
  watch.gathered.clear();
  watch.timer = undefined;
  if (things.length > GATHER_MAX) watch.watcher.lost();
  else watch.watcher.changed(things);
}
