/** The expiry of an account as a day of the local calendar; the API has times in UTC. */

const two = (value: number) => String(value).padStart(2, '0');

/** `2027-07-31`: the last day on which the account is open; empty: no end. */
export function lastDayOf(end: string | null): string {
  if (end === null) return '';
  // An expiry at midnight is the end of the previous day.
  const at = new Date(Date.parse(`${end.replace(' ', 'T')}Z`) - 1000);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

/** Midnight after that day, as the API has it; empty: no end. */
export function endOfDay(day: string): string | null {
  const [year = 0, month = 1, date = 1] = day.split('-').map(Number);
  const end = new Date(year, month - 1, date + 1);
  if (day === '' || Number.isNaN(end.getTime())) return null;
  return end.toISOString().slice(0, 19).replace('T', ' ');
}
