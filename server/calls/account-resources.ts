/** Resources of an account in a recovery point, which domains list and restore for another account. */
import type { Reads } from '../metadata/metadata.ts';
import type { Call, Principal } from './principal.ts';

export const KINDS = ['bucket', 'database', 'machine'] as const;
export type Kind = (typeof KINDS)[number];

export interface AccountResource {
  readonly kind: Kind;
  /** Id in the point; for a bucket, its name. */
  readonly id: string;
  readonly name: string;
  /** Approximate; null: unknown. */
  readonly sizeBytes: number | null;
}

/** A restored resource. */
export interface RestoredResource {
  /** Id of the new resource; for a bucket, its name. */
  readonly id: string;
  /** Parts that could not be restored, or not unchanged. */
  readonly lacks: string[];
}

export interface Past {
  readonly pointId: string;
  /** The account in the point. */
  readonly accountId: number;
  readonly resource: AccountResource;
}

export interface AccountResources {
  /** The resources of an account in a point, oldest first. */
  list(reads: Reads, accountId: number): Promise<readonly AccountResource[]>;
  /**
   * Creates the resource for the caller, or continues an incomplete bucket. The call records a
   * machine or database in the commit that creates it. Throws AppErrors.
   */
  restore(call: Call, past: Past): Promise<RestoredResource>;
}

/** The owner of a restored account, as the caller of the domains. */
export function ownerOf(account: Pick<Principal, 'accountId' | 'username' | 'canonicalId'>): Principal {
  return {
    ...account,
    isAdmin: false,
    isAuditor: false,
    scopes: ['*'],
    bucketLimits: null,
    via: 'control',
    keyExpiresAt: null,
    credentialId: 'recovery',
  };
}
