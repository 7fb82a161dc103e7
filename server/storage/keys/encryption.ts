/** How the bytes of objects and parts are encrypted. */
import type { Ages } from '../../metadata/ages.ts';
import type { Awaitable, Reads } from '../../metadata/metadata.ts';
import type { Sealer } from '../../platform/master-key.ts';
import type { CustomerKey } from './customer-key.ts';
import { NamedKeySql } from './named-key-sql.ts';
import { type NamedKey, NamedKeyring } from './named-keyring.ts';

/** `cloud`: a data key under the master key. The other kinds are explained in their files. */
export type Encryption =
  | { readonly kind: 'none' }
  | { readonly kind: 'cloud' }
  | { readonly kind: 'named'; readonly key: NamedKey }
  | { readonly kind: 'customer'; readonly key: CustomerKey };

/** The sealed data key in the row of a blob. */
export interface SealedDataKey {
  /** null: the blob is not encrypted. */
  readonly wrapped_key: Uint8Array | null;
  /** Row id of the named key that wraps the data key too; null: none. */
  readonly named_key: number | null;
}

export interface DataKeysDeps {
  readonly keyring: NamedKeyring;
  readonly sealer: Sealer;
}

const CONTEXT = 'blob-key';

export function openDataKeys(metadata: Reads, sealer: Sealer, ages: Ages): DataKeys {
  const keyring = new NamedKeyring({ store: new NamedKeySql(metadata), sealer, ages });
  return new DataKeys({ sealer, keyring });
}

export class DataKeys {
  readonly #deps: DataKeysDeps;

  constructor(deps: DataKeysDeps) {
    this.#deps = deps;
  }

  /** The text for the row of a blob. */
  wrap(dataKey: Uint8Array, encryption: Encryption): Uint8Array {
    const inner = encryption.kind === 'named' ? encryption.key.wrap(dataKey) : dataKey;
    return this.#deps.sealer.seal(inner, CONTEXT);
  }

  /** Throws or rejects with `data_corrupted`. */
  open({ wrapped_key, named_key }: SealedDataKey): Awaitable<Uint8Array | null> {
    if (wrapped_key === null) return null;
    const opened = this.#deps.sealer.unseal(wrapped_key, CONTEXT);
    return named_key === null ? opened : this.#openNamed(opened, named_key);
  }

  /** Like open(), for callers who want the bytes. Also rejects with `encryption_key_disabled`. */
  openEnabled(sealed: SealedDataKey): Awaitable<Uint8Array | null> {
    return sealed.named_key === null ? this.open(sealed) : this.#openIfEnabled(sealed, sealed.named_key);
  }

  async #openIfEnabled(sealed: SealedDataKey, namedKey: number): Promise<Uint8Array | null> {
    await this.#deps.keyring.enabledByRow(namedKey);
    return this.open(sealed);
  }

  async #openNamed(wrapped: Uint8Array, namedKey: number): Promise<Uint8Array> {
    return (await this.#deps.keyring.byRow(namedKey)).unwrap(wrapped);
  }

  get keyring(): NamedKeyring {
    return this.#deps.keyring;
  }
}
