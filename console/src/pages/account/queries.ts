import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { cloud } from '../../cloud.ts';

export const sessionsQuery = queryOptions({
  queryKey: ['sessions'],
  queryFn: () => cloud.listSessions().all(),
});

export const accessKeysQuery = queryOptions({
  queryKey: ['access-keys'],
  queryFn: () => cloud.listAccessKeys().all(),
});

export const keyRightsQuery = (key: string) =>
  queryOptions({ queryKey: ['access-keys', key, 'rights'], queryFn: () => cloud.getRights({ key }) });

export const OUTCOMES = ['done', 'refused', 'failed'] as const;

/** Empty: anything. */
export interface AuditFilter {
  readonly actor: string;
  readonly action: string;
  readonly target: string;
  readonly outcome: '' | (typeof OUTCOMES)[number];
}

export const NO_FILTER: AuditFilter = { actor: '', action: '', target: '', outcome: '' };
const AUDIT_PAGE = 50;

/** `account`: `all` or an id; default: the caller's. */
export const auditQuery = (account: string | undefined, filter: AuditFilter) =>
  infiniteQueryOptions({
    queryKey: ['audit', account ?? 'own', filter],
    queryFn: ({ pageParam }) => {
      const given = Object.entries({ ...filter, account_id: account ?? '' }).filter(
        ([, value]) => value !== '',
      );
      const page = { limit: AUDIT_PAGE, ...(pageParam === '' ? {} : { cursor: pageParam }) };
      return cloud.listAudit(Object.fromEntries(given)).page(page);
    },
    initialPageParam: '',
    getNextPageParam: ({ cursor }) => cursor,
  });
