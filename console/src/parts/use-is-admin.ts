import { useQuery } from '@tanstack/react-query';
import { accountQuery } from '../queries.ts';

/** True for administrators: what only they can mend is told to nobody else. */
export function useIsAdmin(): boolean {
  const { data: account } = useQuery(accountQuery);
  return account?.is_admin === true;
}
