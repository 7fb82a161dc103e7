import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { cloud } from '../cloud.ts';
import { queryClient } from '../queries.ts';

/** Ends the session, and what was read of the account with it. */
export function useSignOut() {
  const navigate = useNavigate();
  return useMutation({
    mutationFn: () => cloud.account.logOut(),
    onSuccess: async () => {
      await navigate({ to: '/sign-in' });
      queryClient.clear();
    },
  });
}
