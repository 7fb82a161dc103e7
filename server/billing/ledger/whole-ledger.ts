/** The whole ledger of an idle cloud: a restored one or a recovery point. */
import type { Reads } from '../../metadata/metadata.ts';
import { LedgerWalk } from './checks-walk.ts';
import { LedgerStore } from './ledger-store.ts';

export interface WholeLedger {
  /** Number of the last transfer; 0 if there is none. */
  readonly seq: number;
  readonly hash: string;
  /** Sum of all balances. */
  readonly credits: number;
}

const MICRO = 1_000_000;

/** Walks every transfer. Rejects with the first problem, which names the transfer. */
export async function walkWholeLedger(reads: Reads): Promise<WholeLedger> {
  const store = new LedgerStore(reads);
  const walk = new LedgerWalk({ store });
  const problem = await walk.wholeProblem();
  if (problem !== null) throw new Error(problem);
  const { micro } = await store.allCached();
  return { seq: Number(walk.head.seq), hash: walk.head.hash, credits: Number(micro) / MICRO };
}
