/** How the bytes of a version are encrypted. */
import type { Encryption } from '../keys/encryption.ts';
import type { NamedKeyring } from '../keys/named-keyring.ts';
import type { PartUploads } from '../uploads/part-uploads.ts';
import type { ContentRow } from './object-sql.ts';

type Asked = Pick<ContentRow, 'named_key' | 'upload' | 'wrapped_key'>;

export class StoredEncryption {
  readonly #keyring: Pick<NamedKeyring, 'byRow'>;
  readonly #partUploads: Pick<PartUploads, 'assembledFrom'>;

  constructor(keyring: Pick<NamedKeyring, 'byRow'>, partUploads: Pick<PartUploads, 'assembledFrom'>) {
    this.#keyring = keyring;
    this.#partUploads = partUploads;
  }

  /** Not for customer-provided keys, which only the client knows. */
  async of({ named_key: namedKey, upload, wrapped_key: wrappedKey }: Asked): Promise<Encryption> {
    if (namedKey !== null) return { kind: 'named', key: await this.#keyring.byRow(namedKey) };
    if (upload === null) return { kind: wrappedKey === null ? 'none' : 'cloud' };
    const [first] = await this.#partUploads.assembledFrom(upload, 1);
    return { kind: first !== undefined && first.wrapped_key !== null ? 'cloud' : 'none' };
  }
}

/**
 * Whether both are encrypted alike, so that a copy may share the bytes of `row`. `source`: the
 * stored row.
 */
export function isSameEncryption(
  source: Encryption,
  target: Encryption,
  { customer }: Pick<ContentRow, 'customer'>,
): boolean {
  if (target.kind === 'named') return source.kind === 'named' && source.key.id === target.key.id;
  if (target.kind === 'customer') return customer !== null && target.key.fits(customer);
  return source.kind === target.kind;
}
