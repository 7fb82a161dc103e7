/** Ids of accounts, as written in texts. */
import { accountNotFound } from './account-errors.ts';

/** Text that is not an id matches no account. */
export function accountIdOf(params: { id: string }): number {
  const id = parseAccountId(params.id);
  if (id === undefined) throw accountNotFound();
  return id;
}

export function parseAccountId(text: string): number | undefined {
  return /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined;
}
