/** Months as addresses and the API have them: `YYYY-MM`, in UTC. */

export const thisMonth = (): string => new Date().toISOString().slice(0, 7);

export function isMonth(value: unknown): value is string {
  return typeof value === 'string' && /^\d{4}-(?:0[1-9]|1[0-2])$/.test(value);
}

/** The API's period: the first day of the month and of the next. */
export function periodOf(month: string): { readonly from: string; readonly to: string } {
  const next = new Date(`${month}-01T00:00:00Z`);
  next.setUTCMonth(next.getUTCMonth() + 1);
  return { from: `${month}-01`, to: next.toISOString().slice(0, 10) };
}
