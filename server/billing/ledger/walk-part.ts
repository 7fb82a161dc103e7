/** What a thread does of a long walk of the ledger. */
import type { Reads } from '../../metadata/metadata.ts';
import { LedgerWalk, type WalkedPart } from './checks-walk.ts';
import { CheckStore } from './ledger-store.ts';

/** The transfers `from` to `to`, both included; those before are walked by somebody else. */
export interface WalkPart {
  readonly from: number;
  readonly to: number;
}

export function run(reads: Reads, part: WalkPart): Promise<WalkedPart> {
  return new LedgerWalk({ store: new CheckStore(reads) }).walkPart(part);
}
