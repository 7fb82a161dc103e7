import { queryOptions } from '@tanstack/react-query';
import { cloud } from '../../cloud.ts';

export const accessKeysQuery = queryOptions({
  queryKey: ['access-keys'],
  queryFn: () => cloud.account.accessKeys.list().all(),
});
