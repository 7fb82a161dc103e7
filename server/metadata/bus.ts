/**
 * Reports what a commit has changed, to the parts of this process and to other nodes, if there are any:
 * caches to invalidate, and resources for watchers. In this process it is reported at once. Reports to other
 * nodes may be late or lost, so their cached rows also have a maximum age (ages.ts).
 */
import type { ResourceChange } from './metadata.ts';

/** Kinds of cache entries that nodes invalidate. */
export type Forgotten =
  /** Every credential of an account; its row id. */
  | { readonly kind: 'account'; readonly id: number }
  /** One key or session, by Principal.credentialId. */
  | { readonly kind: 'credential'; readonly id: string }
  /** Limits of plans and accounts. */
  | { readonly kind: 'quota'; readonly id: '' }
  /** Monthly credits of plans, and the plans of accounts. */
  | { readonly kind: 'plan'; readonly id: '' }
  | { readonly kind: 'price'; readonly id: '' }
  /** Which reads of a bucket are logged; its row id. */
  | { readonly kind: 'data-events'; readonly id: number }
  /** A named encryption key; its row id. */
  | { readonly kind: 'named-key'; readonly id: number };

type Kind = Forgotten['kind'];
type IdOf<K extends Kind> = Extract<Forgotten, { readonly kind: K }>['id'];
/** `null`: all entries, because messages were lost. */
type Forget<K extends Kind> = (id: IdOf<K> | null) => unknown;

/** Receives changed resources; its methods must neither throw nor block. */
export interface ChangeListener {
  tell(change: ResourceChange): void;
  /** Messages of other nodes were lost: anything may have changed. */
  lost(): void;
}

/** Messages for other nodes; null: too many, or some were lost. */
export interface Told {
  readonly forgets: readonly Forgotten[] | null;
  readonly changes: readonly ResourceChange[] | null;
}

/** The connection to other nodes. Sending neither throws nor waits. */
export interface BusLink {
  forgets(thing: Forgotten): void;
  changed(change: ResourceChange): void;
  close(): Promise<void>;
}

export class Bus {
  readonly #forget = new Map<Kind, ((id: never) => unknown)[]>();
  readonly #listeners = new Set<ChangeListener>();
  #link: BusLink | null = null;

  /** Other nodes receive messages from now on. */
  connect(link: BusLink): void {
    this.#link = link;
  }

  /** Calls `forget` for each invalidated entry of the kind. It must not throw. */
  onForget<K extends Kind>(kind: K, forget: Forget<K>): void {
    this.#forget.set(kind, [...(this.#forget.get(kind) ?? []), forget]);
  }

  /** Notifies `listener` until the returned function is called. */
  onChange(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Call it after a commit of this process, or one with an unknown outcome. */
  forgets(thing: Forgotten): void {
    this.#forgetHere(thing);
    this.#link?.forgets(thing);
  }

  /** Call it after a commit of this process. */
  changed(change: ResourceChange): void {
    for (const listener of this.#listeners) listener.tell(change);
    this.#link?.changed(change);
  }

  /** Delivers the message of another node. */
  receive({ forgets, changes }: Told): void {
    if (forgets === null)
      for (const each of this.#forget.values()) for (const forget of each) forget(null as never);
    else for (const thing of forgets) this.#forgetHere(thing);
    for (const listener of this.#listeners) {
      if (changes === null) listener.lost();
      else for (const change of changes) listener.tell(change);
    }
  }

  /** Sends all pending messages. */
  async close(): Promise<void> {
    await this.#link?.close();
    this.#link = null;
  }

  #forgetHere({ kind, id }: Forgotten): void {
    for (const forget of this.#forget.get(kind) ?? []) forget(id as never);
  }
}
