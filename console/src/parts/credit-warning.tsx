/** A warning that credits end soon, are used up, or do not suffice, with how to get more. */

import { useQuery } from '@tanstack/react-query';
import { accountQuery } from '../queries.ts';
import { text } from '../texts/text.ts';
import { Warning } from './forms/warning.tsx';
import { sayCredits } from './say.ts';
import { AnchorLink } from './tables/links.tsx';
import { When } from './tables/when.tsx';

const words = text.billing;

export function CreditWarning() {
  const { data: account } = useQuery(accountQuery);
  if (account === undefined || account.billing_state === 'ok') return null;
  const { billing_state: state, grace_ends_at: graceEnds } = account;
  return (
    <Warning title={words.states[state]}>
      {graceEnds !== null && (
        <>
          {words.graceEnds} <When at={graceEnds} />.{' '}
        </>
      )}
      <MoreCredits /> {state !== 'low' && state !== 'critical' && words.startsAgain}
    </Warning>
  );
}

/** How to get more credits: administrators grant them. */
export function MoreCredits() {
  const { data: account } = useQuery(accountQuery);
  if (account?.is_admin !== true) return words.askForMore;
  return (
    <AnchorLink to="/administration" search={{ tab: 'accounts', find: account.username }}>
      {words.giveYourself}
    </AnchorLink>
  );
}

interface TooFewCreditsProps {
  /** Credits reserved when the form is sent; 0: the balance must be positive. */
  readonly needed: number;
  /** An alternative if that is too much. */
  readonly wayOut?: string;
}

/** Shown above the button of a form that would be refused. */
export function TooFewCredits({ needed, wayOut = '' }: TooFewCreditsProps) {
  const { data: account } = useQuery(accountQuery);
  if (account === undefined) return null;
  const { credits, billing_state: state } = account;
  if (credits <= 0 || state === 'grace' || state === 'suspended') {
    return (
      <Warning title={words.nothingLeft}>
        <MoreCredits />
      </Warning>
    );
  }
  if (credits >= needed) return null;
  return (
    <Warning title={words.tooFew(sayCredits(needed), sayCredits(credits))}>
      {wayOut} <MoreCredits />
    </Warning>
  );
}
