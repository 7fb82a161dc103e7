import { useMutation } from '@tanstack/react-query';
import { cloud } from '../cloud.ts';
import { tellSignedOut } from './one-account.ts';

/** Ends the session; every tab of this browser forgets what it read of the account. */
export function useSignOut() {
  return useMutation({ mutationFn: () => cloud.logout(), onSuccess: tellSignedOut });
}
