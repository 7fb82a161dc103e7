/**
 * The monthly price of the resource that a form would create, and how long the credits last with it, from the
 * server.
 */
import { Text } from '@mantine/core';
import { keepPreviousData, queryOptions, useQuery } from '@tanstack/react-query';
import type { Result } from '../../../sdk/index.ts';
import { cloud } from '../cloud.ts';
import { spendText } from '../texts/spend-text.ts';
import { sayCredits } from './say.ts';
import { When } from './tables/when.tsx';

const words = spendText.quote;

type Asked = Parameters<typeof cloud.getQuote>[0];

const quoteQuery = (asked: Asked) =>
  queryOptions({
    queryKey: ['billing', 'quote', asked],
    queryFn: () => cloud.getQuote(asked),
    placeholderData: keepPreviousData,
  });

interface QuoteLineProps {
  readonly of: Asked;
  /** The price is that of one gigabyte. */
  readonly isBySize?: boolean;
  /** False: the form shows the price itself. */
  readonly hasPrice?: boolean;
}

export function QuoteLine({ of, isBySize = false, hasPrice = true }: QuoteLineProps) {
  const { data: quote } = useQuery(quoteQuery(of));
  if (quote === undefined) return null;
  const isFree = Number(quote.per_month) === 0;
  const month = (isBySize ? words.perGigabyte : words.month)(sayCredits(quote.per_month));
  return (
    <div data-quote>
      {hasPrice && <Text fw={600}>{isFree ? words.free : month}</Text>}
      <Lasts quote={quote} />
    </div>
  );
}

function Lasts({ quote }: { readonly quote: Result<'getQuote'> }) {
  const { days_left_with: days, cap_reached_with: capAt } = quote;
  return (
    <>
      {days !== null && (
        <Text size="sm" c="dimmed">
          {words.lasts(Math.floor(days))}
        </Text>
      )}
      {capAt !== null && (
        <Text size="sm" c="dimmed">
          {words.ends} <When at={capAt} />
        </Text>
      )}
    </>
  );
}
