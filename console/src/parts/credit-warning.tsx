/** Credits that end soon, or are at their end, and how there are more. */
import { useQuery } from '@tanstack/react-query';
import { accountQuery } from '../queries.ts';
import { text } from '../texts/text.ts';
import { AnchorLink } from './links.tsx';
import { Warning } from './warning.tsx';
import { When } from './when.tsx';

const words = text.billing;

export function CreditWarning() {
  const { data: account } = useQuery(accountQuery);
  if (account === undefined || account.billing_state === 'ok') return null;
  const { billing_state: state, grace_ends_at: graceEnds, is_admin: isAdmin, username } = account;
  return (
    <Warning title={words.states[state]}>
      {graceEnds !== null && (
        <>
          {words.graceEnds} <When at={graceEnds} />.{' '}
        </>
      )}
      {isAdmin ? (
        <AnchorLink to="/administration" search={{ tab: 'accounts', find: username }}>
          {words.giveYourself}
        </AnchorLink>
      ) : (
        words.askForMore
      )}
    </Warning>
  );
}
