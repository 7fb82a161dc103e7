/** The cost of the month so far, and the expected cost at its end, as texts. */
import { useQuery } from '@tanstack/react-query';
import { sayCredits } from '../../parts/say.ts';
import { text } from '../../texts/text.ts';
import { costAtMonthEnd } from './month-end.ts';
import { estimateQuery, reportQuery, thisMonth } from './queries.ts';

export function useMonthCost(): { readonly value: string; readonly note: string } {
  const { data: month } = useQuery(reportQuery(thisMonth()));
  const { data: now } = useQuery(estimateQuery);
  if (month === undefined || now === undefined) return { value: '–', note: '' };
  const asOf = Date.parse(`${month.as_of.replace(' ', 'T')}Z`);
  const atEnd = costAtMonthEnd(Number(month.total_cost), Number(now.per_hour), { asOf });
  return { value: sayCredits(month.total_cost), note: text.billing.byMonthEnd(sayCredits(atEnd)) };
}
