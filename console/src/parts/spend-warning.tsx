/** A warning that the spend cap is near or reached, with the next step. */
import { useQuery } from '@tanstack/react-query';
import { spendCapQuery } from '../queries.ts';
import { spendText as words } from '../texts/spend-text.ts';
import { Warning } from './forms/warning.tsx';
import { sayCredits } from './say.ts';
import { AnchorLink } from './tables/links.tsx';
import { When } from './tables/when.tsx';

export function SpendWarning() {
  const { data } = useQuery(spendCapQuery);
  if (data === undefined || data.cap === null) return null;
  const { cap, percent, is_reached, resets_at, administrator_cap, warn_percent } = data;
  const way =
    administrator_cap === cap ? (
      words.ask
    ) : (
      <AnchorLink to="/billing" search={{}}>
        {words.change}
      </AnchorLink>
    );
  if (is_reached) {
    return (
      <Warning title={words.reached(sayCredits(cap))}>
        {words.reachedLead} <When at={resets_at} /> {words.reachedOr} {way}
      </Warning>
    );
  }
  const first = Math.min(...warn_percent);
  if (percent === null || percent < first) return null;
  return (
    <Warning title={words.near(String(Math.floor(percent)), sayCredits(cap))}>
      {words.nearLead} {way}
    </Warning>
  );
}
