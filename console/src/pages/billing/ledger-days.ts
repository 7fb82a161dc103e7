/** Entries of the ledger by the day they were booked on. */

/** The members of an entry that are read here. */
export interface Booked {
  readonly created_at: string;
  readonly amount: number | string;
  readonly held: number | string;
  readonly balance: number | string;
}

export interface LedgerDay<Entry extends Booked> {
  /** `2026-01-31`, in UTC, as days of the report are. */
  readonly date: string;
  /** Newest first. */
  readonly entries: readonly Entry[];
  /** Credits: the sum of the changes. */
  readonly amount: number;
  /** Credits: change of the held amount. */
  readonly held: number;
  /** Credits at the end of the day. */
  readonly balance: number;
}

/** `entries`: newest first. The oldest day may continue in entries not read yet. */
export function daysOf<Entry extends Booked>(entries: readonly Entry[]): LedgerDay<Entry>[] {
  const byDate = Map.groupBy(entries, ({ created_at }) => created_at.slice(0, 10));
  return [...byDate].map(([date, found]) => ({
    date,
    entries: found,
    amount: sum(found.map(({ amount }) => amount)),
    held: sum(found.map(({ held }) => held)),
    balance: Number(found[0]?.balance ?? 0),
  }));
}

const sum = (amounts: readonly (number | string)[]) =>
  amounts.reduce<number>((total, amount) => total + Number(amount), 0);
