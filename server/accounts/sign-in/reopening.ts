/** Opening an account that its owner had closed. */
import type { Change } from '../../metadata/change.ts';
import type { Statement } from '../../metadata/metadata.ts';
import type { ApiKeys } from '../keys/api-keys.ts';
import type { AccountRow } from '../store.ts';

export interface ReopeningDeps {
  readonly apiKeys: Pick<ApiKeys, 'issue'>;
  /** See AdministrationDeps. */
  readonly reactivation: (accountId: number) => readonly Statement[];
  readonly accountChanged?: (accountId: number) => void;
}

/** Its owner closed the account, and may open it again by signing in. */
export function isClosedByOwner({ removal_at, suspended_reason }: AccountRow): boolean {
  return removal_at !== null && suspended_reason === null;
}

/** The keys ended when the account was closed; machines start again. Returns the new key. */
export function followReopening(
  change: Change,
  { apiKeys, reactivation, accountChanged }: ReopeningDeps,
  accountId: number,
): string {
  const key = apiKeys.issue(accountId);
  change.add(key.statement);
  change.addAll(reactivation(accountId));
  change.forgets({ kind: 'account', id: accountId });
  change.after(() => accountChanged?.(accountId));
  return key.text;
}
