import { queryClient } from '../queries.ts';

/** A first reading that is under way would be taken for a new one, though it may lack what has changed. */
export async function readAgain(queryKey: readonly string[]): Promise<void> {
  await queryClient.cancelQueries({ queryKey });
  await queryClient.invalidateQueries({ queryKey });
}
